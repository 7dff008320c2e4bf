package main

import (
	"github.com/millrace-io/millrace/integration/gen"
)

// input is the deterministic input of a run: record n of --records.
type input struct {
	o          options
	picker     *gen.Picker
	vocabulary [][]byte // kind lines only
}

func newInput(o options) *input {
	in := &input{o: o, picker: gen.NewPicker(o.keys, o.zipf)}
	if o.kind == "lines" {
		in.vocabulary = gen.Vocabulary(o.seed, int(o.keys))
	}
	return in
}

// appendRecord appends key (kind keyed only) and value of record n and returns them.
func (in *input) appendRecord(key, value []byte, n uint64) (k, v []byte) {
	if in.vocabulary != nil {
		return nil, gen.AppendLine(value, in.o.seed, n, in.o.words, in.picker, in.vocabulary)
	}
	return in.appendKey(key, n), gen.AppendValue(value, in.o.seed, n, in.o.size)
}

func (in *input) appendKey(dst []byte, n uint64) []byte {
	return gen.AppendKey(dst, in.picker.Pick(gen.Draw(in.o.seed, n)))
}

// timestamp is the event time of record n in milliseconds.
func (in *input) timestamp(n uint64) int64 { return in.o.t0 + int64(n)*in.o.dtMicros/1000 }
