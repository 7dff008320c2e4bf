package streamstest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// A vector file holds topologies, inputs and what Apache Kafka Streams 4.4 made of them. Its own "schema" and "functions"
// fields tell what everything means. Fields that this runner does not know are never passed over: unknown expectations fail,
// unknown operators and options make a vector "not covered".
type vectorFile struct {
	Vectors []vector `json:"vectors"`
}

type vector struct {
	ID               string            `json:"id"`
	Config           map[string]string `json:"config"`
	StartWallClockMS int64             `json:"start_wall_clock_ms"`
	Topology         []statement       `json:"topology"`
	Inputs           []vectorInput     `json:"inputs"`
	Expect           json.RawMessage   `json:"expect"`
}

// statement is one operator, in the order of the program, as its fields.
type statement map[string]any

type vectorInput struct {
	Topic              string      `json:"topic"`
	Key                any         `json:"key"`
	Value              any         `json:"value"`
	RawValueHex        *string     `json:"raw_value_hex"`
	TS                 int64       `json:"ts"`
	Headers            [][]*string `json:"headers"`
	AdvanceWallClockMS *int64      `json:"advance_wall_clock_ms"`
}

// expectation is what must come out; nil fields are not checked.
type expectation struct {
	Outputs        map[string][]vectorRecord         `json:"outputs"`
	DroppedRecords *int64                            `json:"dropped_records"`
	StoreNames     *[]string                         `json:"store_names"`
	InternalTopics *map[string]vectorTopic           `json:"internal_topics"`
	Describe       *string                           `json:"describe"`
	Error          *vectorError                      `json:"error"`
	TopicRecords   map[string][]vectorTopicRecordHex `json:"topic_records"`
}

type vectorRecord struct {
	Key     any           `json:"key"`
	Window  *vectorWindow `json:"window"`
	Value   any           `json:"value"`
	TS      int64         `json:"ts"`
	Headers [][]*string   `json:"headers"`
}

type vectorWindow struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

type vectorTopic struct {
	Kind       string            `json:"kind"`
	Config     map[string]string `json:"config"`
	Partitions *int32            `json:"partitions"`
}

// vectorError is a failure at an input, by its index, or while the topology is built.
type vectorError struct {
	AtInput *int   `json:"at_input"`
	At      string `json:"at"`
}

type vectorTopicRecordHex struct {
	KeyHex     *string     `json:"key_hex"`
	ValueHex   *string     `json:"value_hex"`
	TS         *int64      `json:"ts"` // null: the producer sets it
	HeadersHex [][]*string `json:"headers_hex"`
}

// readVectors reads a file, relative to this package or to the module's root. Numbers stay exact.
func readVectors(name string) ([]vector, error) {
	data, err := os.ReadFile(name)
	if os.IsNotExist(err) && !filepath.IsAbs(name) {
		data, err = os.ReadFile(filepath.Join("..", "..", name))
	}
	if err != nil {
		return nil, err
	}
	var file vectorFile
	if err := decodeExact(data, &file, false); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(file.Vectors) == 0 {
		return nil, fmt.Errorf("%s: there are no vectors in it", name)
	}
	return file.Vectors, nil
}

func decodeExact(data []byte, into any, strict bool) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if strict {
		decoder.DisallowUnknownFields()
	}
	return decoder.Decode(into)
}

// text, number and sub read a statement's fields; absent ones are zero.
func (s statement) text(field string) string {
	v, _ := s[field].(string)
	return v
}

func (s statement) number(field string) int64 {
	n, ok := s[field].(json.Number)
	if !ok {
		return 0
	}
	v, err := n.Int64()
	if err != nil {
		panic(fmt.Sprintf("field %s is %v: want an integer", field, n))
	}
	return v
}

func (s statement) sub(field string) statement {
	v, _ := s[field].(map[string]any)
	return v
}

func (s statement) texts(field string) []string {
	list, _ := s[field].([]any)
	var all []string
	for _, v := range list {
		all = append(all, v.(string))
	}
	return all
}

// kind is the type of a field such as key_type: string unless it says otherwise.
func (s statement) kind(field string) kind {
	if k := s.text(field); k != "" {
		return kind(k)
	}
	return kindString
}
