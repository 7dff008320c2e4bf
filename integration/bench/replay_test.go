package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func smallInput(workload string) options {
	o, err := parse([]string{workload, "--records", "400", "--keys", "20", "--t0-ms", "1700000000000", "--dt-us", "100000", "--window-ms", "5000"}, io.Discard)
	if err != nil {
		panic(err)
	}
	if workload == "wordcount" {
		o.kind = "lines"
	}
	return o
}

// rightSink is what a correct run leaves, in one of the orders in which partitions can be read.
func rightSink(o options) []*kgo.Record {
	in, part := newInput(o), partitionOf(o.partitions)
	counts := map[string]uint64{}
	var sink []*kgo.Record
	add := func(key, value []byte, n uint64, p int32) {
		sink = append(sink, &kgo.Record{Topic: o.out, Partition: p, Key: key, Value: value, Timestamp: time.UnixMilli(in.timestamp(n))})
	}
	for n := range o.records {
		key, value := in.appendRecord(nil, nil, n)
		switch o.workload {
		case "pass":
			touch(value)
			add(key, value, n, part(key))
		case "wordcount":
			for word := range bytes.SplitSeq(value, []byte(" ")) {
				counts[string(word)]++
				add(word, binary.BigEndian.AppendUint64(nil, counts[string(word)]), n, part(word))
			}
		default:
			if o.workload == "windowed" {
				ts := in.timestamp(n)
				key = appendWindowKey(key, ts-ts%5000)
			}
			counts[string(key)]++
			add(key, binary.BigEndian.AppendUint64(nil, counts[string(key)]), n, part(key))
		}
	}
	return sink
}

func compare(t *testing.T, o options, sink []*kgo.Record) error {
	t.Helper()
	r, err := newReplay(o, o.workload)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range sink {
		if err := r.want(record); err != nil {
			return err
		}
	}
	return r.finished()
}

// Every planted fault has to be reported, in every workload; the right sink must pass.
func TestReplayReportsPlantedFaults(t *testing.T) {
	faults := map[string]func([]*kgo.Record) []*kgo.Record{
		"one lost":      func(s []*kgo.Record) []*kgo.Record { return append(s[:40:40], s[41:]...) },
		"the last lost": func(s []*kgo.Record) []*kgo.Record { return s[:len(s)-1] },
		"one twice":     func(s []*kgo.Record) []*kgo.Record { return append(s[:40:40], s[39:]...) },
		"two of a key swapped": func(s []*kgo.Record) []*kgo.Record {
			for j := 41; ; j++ {
				if bytes.Equal(s[j].Key, s[40].Key) {
					s[40], s[j] = s[j], s[40]
					return s
				}
			}
		},
		"a value changed": func(s []*kgo.Record) []*kgo.Record {
			s[40].Value[len(s[40].Value)-1] ^= 1
			return s
		},
		"another partition": func(s []*kgo.Record) []*kgo.Record {
			s[40].Partition = (s[40].Partition + 1) % 4
			return s
		},
	}
	for _, workload := range []string{"pass", "count", "windowed", "wordcount"} {
		o := smallInput(workload)
		if err := compare(t, o, rightSink(o)); err != nil {
			t.Errorf("%s: the right sink: %v", workload, err)
		}
		for name, plant := range faults {
			if err := compare(t, o, plant(rightSink(o))); err == nil {
				t.Errorf("%s: %s was not noticed", workload, name)
			}
		}
	}
	o := smallInput("count")
	sink := rightSink(o)
	sink[3].Timestamp = sink[3].Timestamp.Add(time.Millisecond)
	if err := compare(t, o, sink); err == nil {
		t.Error("a wrong timestamp was not noticed")
	}
}

func TestOptionsRejectWhatThePeerRejects(t *testing.T) {
	for _, args := range []string{"", "pass --no-such-flag 1", "pass --guarantee twice", "pass stray", "load --load-kind odd",
		"pass --commit-ms 0", "pass --commit-ms x", "pass --warm 1", "load --records 0"} {
		if _, err := parse(strings.Fields(args), io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v, want a usage error", args, err)
		}
	}
	o, err := parse(strings.Fields("load --zipf true --commit-ms 250 --timeout-s 3"), io.Discard)
	if err != nil || !o.zipf || o.commit != 250*time.Millisecond || o.timeout != 3*time.Second {
		t.Errorf("parsed %+v, %v", o, err)
	}
}

func TestDoneLineIsOneJSONObject(t *testing.T) {
	var out bytes.Buffer
	m := &meter{o: options{workload: "pass", expect: 10, warm: 0.3, timeout: time.Minute, report: time.Hour, guarantee: "at_least_once"}, w: &out}
	m.in.add(10)
	if err := m.watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	var line struct {
		Ev        string
		In        int64
		HWM       int64   `json:"hwm_kib"`
		PerCPU    float64 `json:"steady_per_cpu_s"`
		FirstInMs float64 `json:"first_in_ms"`
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	if line.Ev != "done" || line.In != 10 || line.HWM <= 0 || line.FirstInMs < 0 {
		t.Errorf("got %s", out.Bytes())
	}
}
