package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

const (
	appID      = "chaos"
	lines      = "lines"
	counts     = "counts"
	store      = "word-counts"
	partitions = 4
	threads    = 2 // a word count
	// flushEvery is how often state goes to disk besides: often, so that timed kills meet it too.
	flushEvery  = 300 * time.Millisecond
	commitEvery = 100 * time.Millisecond
)

// work is a process with a word count.
func work(ctx context.Context, f *flag.FlagSet, args []string) error {
	name, brokers := f.String("name", "", ""), f.String("brokers", "", "")
	dir, addr := f.String("dir", "", ""), f.String("rest", "", "")
	exact := f.Bool("exactly-once", true, "")
	k := killFlags(f)
	f.Parse(args)
	guarantee := streams.AtLeastOnce
	if *exact {
		guarantee = streams.ExactlyOnce
	}
	b := streams.NewBuilder()
	table := b.Stream(lines, serde.Bytes, serde.String).
		FlatMapValues(strings.Fields).
		GroupBy(func(_ []byte, word string) string { return word }, serde.String).
		Count(store)
	table.ToStream().To(counts, serde.String, serde.Int64)
	app, err := streams.New(b, streams.Config{
		AppID: appID, ClientID: *name, Brokers: []string{*brokers}, StateDir: filepath.Join(*dir, "state"), Threads: threads,
		Guarantee: guarantee, AdvertisedEndpoint: *addr, StateFlushInterval: flushEvery, CommitInterval: commitEvery,
		Logger: childLogger(*k, dieAfter),
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", app.Handler())
	mux.HandleFunc("GET /dump", func(w http.ResponseWriter, _ *http.Request) { dump(w, app, table) })
	go http.Serve(l, mux) // ends with the process
	return app.Run(ctx)
}

// dump writes the state that a query sees: every word with its count.
func dump(w http.ResponseWriter, app *streams.App, table streams.Table[string, int64]) {
	view, err := app.View(table.Ref())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	state := map[string]uint64{}
	rows, failed := view.All()
	for word, n := range rows {
		if _, twice := state[word]; twice {
			http.Error(w, fmt.Sprintf("%q is in two tasks", word), http.StatusInternalServerError)
			return
		}
		state[word] = uint64(n)
	}
	if err := failed(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	json.NewEncoder(w).Encode(state)
}
