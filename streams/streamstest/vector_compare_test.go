package streamstest_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/streamstest"
)

// compareRecords compares what was written to topics.
func (o *outcome) compareRecords(d *streamstest.Driver, b *vectorBuilder, expect expectation) {
	for topic := range expect.Outputs {
		if _, ok := b.outputs[topic]; !ok {
			o.differ("output %s is expected, but the topology does not write it", topic)
		}
	}
	for topic, out := range b.outputs {
		if expect.Outputs == nil {
			break
		}
		got, err := readOutput(d, topic, out)
		if err != nil {
			o.differ("output %s: %v", topic, err)
		}
		if diff := cmp.Diff(expectedOutput(expect.Outputs[topic]), got); diff != "" {
			o.differ("output %s, -want +got:\n%s", topic, diff)
		}
	}
	for topic, records := range expect.TopicRecords {
		if diff := cmp.Diff(expectedBytes(records), writtenBytes(d.Written(topic), records)); diff != "" {
			o.differ("bytes on %s, -want +got:\n%s", topic, diff)
		}
	}
}

// flat is a record in a form that compares and prints well.
type flat struct {
	Key, Value any
	Window     vectorWindow
	TS         int64
	Headers    string
}

func expectedOutput(records []vectorRecord) []flat {
	var all []flat
	for _, r := range records {
		f := flat{Key: plain(r.Key), Value: plain(r.Value), TS: r.TS, Headers: pairs(r.Headers)}
		if r.Window != nil {
			f.Window = *r.Window
		}
		all = append(all, f)
	}
	return all
}

func pairs(headers [][]*string) string {
	var parts []string
	for _, h := range headers {
		part := *h[0] + "=null"
		if h[1] != nil {
			part = *h[0] + "=" + *h[1]
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func headerText(headers []streamstest.Header, show func([]byte) string) string {
	var list [][]*string
	for _, h := range headers {
		pair := []*string{&h.Key, nil}
		if h.Value != nil {
			pair[1] = new(show(h.Value))
		}
		list = append(list, pair)
	}
	return pairs(list)
}

func readOutput(d *streamstest.Driver, topic string, out outputTopic) ([]flat, error) {
	if out.window == 0 {
		return readAs(d, topic, out.key.serde(), out.value, func(k any) (any, vectorWindow) { return k, vectorWindow{} })
	}
	return readAs(d, topic, serde.Windowed(out.key.serde(), out.window), out.value, unpackWindow)
}

func readAs[K any](d *streamstest.Driver, topic string, key serde.Serde[K], value kind, unpack func(K) (any, vectorWindow)) ([]flat, error) {
	records, err := d.Output(topic, key, value.serde()).ReadAll()
	var all []flat
	for _, r := range records {
		f := flat{Value: r.Value, TS: r.Timestamp.UnixMilli(), Headers: headerText(r.Headers, func(b []byte) string { return string(b) })}
		if !r.NoKey {
			f.Key, f.Window = unpack(r.Key)
		}
		all = append(all, f)
	}
	return all, err
}

func expectedBytes(records []vectorTopicRecordHex) []string {
	var all []string
	for _, r := range records {
		all = append(all, byteLine(orNull(r.KeyHex), orNull(r.ValueHex), r.TS, pairs(r.HeadersHex)))
	}
	return all
}

// writtenBytes shows records as bytes; a timestamp that the expectation leaves to the producer is left out.
func writtenBytes(records []streamstest.Raw, want []vectorTopicRecordHex) []string {
	var all []string
	for i, r := range records {
		ts := new(r.Timestamp.UnixMilli())
		if i < len(want) && want[i].TS == nil {
			ts = nil
		}
		all = append(all, byteLine(hexOrNull(r.Key, r.NoKey), hexOrNull(r.Value, r.Tombstone), ts, headerText(r.Headers, hex.EncodeToString)))
	}
	return all
}

func byteLine(key, value string, ts *int64, headers string) string {
	when := "the producer's"
	if ts != nil {
		when = fmt.Sprint(*ts)
	}
	return fmt.Sprintf("key %s value %s ts %s headers [%s]", key, value, when, headers)
}

func orNull(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

func hexOrNull(b []byte, null bool) string {
	if null {
		return "null"
	}
	return hex.EncodeToString(b)
}

// compareTopology compares drops, names and the description.
func (o *outcome) compareTopology(d *streamstest.Driver, expect expectation) {
	if expect.DroppedRecords != nil {
		dropped := d.Dropped()
		delete(dropped, "repartition-null-key") // Kafka Streams drops these without counting
		var sum int64
		for _, n := range dropped {
			sum += n
		}
		if sum != *expect.DroppedRecords {
			o.differ("%d records dropped, want %d: %v", sum, *expect.DroppedRecords, dropped)
		}
	}
	if expect.StoreNames != nil {
		if diff := cmp.Diff(slices.Sorted(slices.Values(*expect.StoreNames)), d.StoreNames()); diff != "" && len(*expect.StoreNames)+len(d.StoreNames()) > 0 {
			o.differ("store names, -want +got:\n%s", diff)
		}
	}
	if expect.Describe != nil {
		if diff := cmp.Diff(*expect.Describe, d.Describe()); diff != "" {
			o.differ("description, -want +got:\n%s", diff)
		}
	}
	if expect.InternalTopics != nil {
		o.compareInternalTopics(d, *expect.InternalTopics)
	}
}

func (o *outcome) compareInternalTopics(d *streamstest.Driver, want map[string]vectorTopic) {
	topics, err := d.InternalTopics()
	if err != nil {
		o.differ("internal topics: %v", err)
		return
	}
	got := map[string]vectorTopic{}
	for _, t := range topics {
		topic := vectorTopic{Kind: "repartition", Config: t.Config}
		if t.Changelog {
			topic.Kind = "changelog"
		}
		if want[t.Name].Partitions != nil {
			topic.Partitions = &t.Partitions
		}
		got[t.Name] = topic
	}
	if diff := cmp.Diff(want, got); diff != "" {
		o.differ("internal topics, -want +got:\n%s", diff)
	}
}
