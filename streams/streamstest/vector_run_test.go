package streamstest_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/streamstest"
)

// outcome of a vector: what differed from the expectation, or what is missing to run it at all.
type outcome struct {
	missing string
	wrong   []string
}

func (o *outcome) differ(format string, args ...any) {
	o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
}

// runVector runs one vector and compares everything that it expects.
func runVector(v vector) (o outcome) {
	setup, missing := configure(v.Config)
	if missing != "" {
		return outcome{missing: missing}
	}
	builder := newVectorBuilder(v.Topology, setup.builder)
	if missing := builder.build(); missing != "" {
		return outcome{missing: missing}
	}
	var expect expectation
	if err := decodeExact(v.Expect, &expect, true); err != nil {
		o.differ("the expectation cannot be read: %v", err)
		return o
	}
	d, err := streamstest.New(builder.b, append(setup.driver, streamstest.StartAt(time.UnixMilli(v.StartWallClockMS)))...)
	wantBuildError := expect.Error != nil && expect.Error.At == "build"
	if err != nil || wantBuildError {
		if (err != nil) != wantBuildError {
			o.differ("building the topology: %v, want an error: %v", err, wantBuildError)
		}
		return o
	}
	o.pipe(d, v, builder, expect.Error)
	o.compareRecords(d, builder, expect)
	o.compareTopology(d, expect)
	return o
}

// setup is what a vector's config asks for.
type setup struct {
	builder []streams.BuilderOption
	driver  []streamstest.Option
}

func configure(config map[string]string) (s setup, missing string) {
	skip := func(*streams.Error, streams.RawRecord) streams.Decision { return streams.Skip }
	generated := true
	for _, key := range slices.Sorted(maps.Keys(config)) {
		switch setting := key + "=" + config[key]; setting {
		case "deserialization.exception.handler=log_and_continue":
			s.driver = append(s.driver, streamstest.OnDecodeError(skip))
		case "processing.exception.handler=log_and_continue":
			s.driver = append(s.driver, streamstest.OnProcessError(skip))
		case "ensure.explicit.internal.resource.naming=true":
			generated = false
		case "deserialization.exception.handler=log_and_fail", "processing.exception.handler=log_and_fail", "dsl.store.format=DEFAULT":
		default:
			return s, "config " + setting
		}
	}
	if generated {
		s.builder = append(s.builder, streams.GeneratedNames())
	}
	return s, ""
}

// pipe feeds the inputs until one fails, and checks that it is the one that must.
func (o *outcome) pipe(d *streamstest.Driver, v vector, b *vectorBuilder, want *vectorError) {
	for i, in := range v.Inputs {
		if in.AdvanceWallClockMS != nil {
			d.Advance(time.Duration(*in.AdvanceWallClockMS) * time.Millisecond)
			continue
		}
		raw, err := rawInput(in, b.inputs[in.Topic])
		if err != nil {
			o.differ("input %d: %v", i, err)
			return
		}
		if err := d.PipeRaw(in.Topic, raw); err != nil {
			if want == nil || want.AtInput == nil || *want.AtInput != i {
				o.differ("input %d failed: %v", i, err)
			}
			return
		}
	}
	if want != nil {
		o.differ("no input failed, want input %d to", *want.AtInput)
	}
}

func rawInput(in vectorInput, kinds result) (streamstest.Raw, error) {
	raw := streamstest.Raw{Timestamp: time.UnixMilli(in.TS)}
	var err error
	if raw.Key, raw.NoKey, err = rawPart(in.Key, kinds.key); err != nil {
		return raw, err
	}
	if in.RawValueHex != nil {
		raw.Value, err = hex.DecodeString(*in.RawValueHex)
	} else {
		raw.Value, raw.Tombstone, err = rawPart(in.Value, kinds.value)
	}
	for _, h := range in.Headers {
		raw.Headers = append(raw.Headers, streamstest.Header{Key: *h[0], Value: bytesOf(h[1])})
	}
	return raw, err
}

func rawPart(v any, k kind) (data []byte, null bool, err error) {
	if v == nil {
		return nil, true, nil
	}
	if k == "" {
		return nil, false, fmt.Errorf("its topic is no source of the topology")
	}
	data, err = k.serde().Append([]byte{}, plain(v))
	return data, false, err
}

func bytesOf(s *string) []byte {
	if s == nil {
		return nil
	}
	return []byte(*s)
}
