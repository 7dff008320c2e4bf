package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

const (
	workerVerb = "worker"
	appID      = "chaos"
	lines      = "lines"
	counts     = "counts"
	store      = "word-counts"
	partitions = 4
	// pointsFD is where a worker tells the points it reaches.
	pointsFD = 3
	// flushEvery is how often state goes to disk besides: often, so that timed kills meet it too.
	flushEvery = 300 * time.Millisecond
)

// workerMain is the process that is killed. It returns its exit status.
func workerMain(args []string) int {
	var brokers, dir, addr string
	var k kill
	f := flag.NewFlagSet(workerVerb, flag.ExitOnError)
	f.StringVar(&brokers, "brokers", "", "")
	f.StringVar(&dir, "dir", "", "")
	f.StringVar(&addr, "rest", "", "")
	f.StringVar(&k.point, "point", "", "")
	f.IntVar(&k.nth, "nth", 0, "")
	f.DurationVar(&k.delay, "delay", 0, "")
	f.Parse(args)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := work(ctx, brokers, dir, addr, k); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	return 0
}

func work(ctx context.Context, brokers, dir, addr string, k kill) error {
	b := streams.NewBuilder()
	table := b.Stream(lines, serde.Bytes, serde.String).
		FlatMapValues(strings.Fields).
		GroupBy(func(_ []byte, word string) string { return word }, serde.String).
		Count(store)
	table.ToStream().To(counts, serde.String, serde.Int64)
	app, err := streams.New(b, streams.Config{
		AppID: appID, ClientID: "worker", Brokers: []string{brokers}, StateDir: filepath.Join(dir, "state"), Threads: 2,
		Guarantee: streams.ExactlyOnce, AdvertisedEndpoint: addr, StateFlushInterval: flushEvery,
		Logger: slog.New(&pointHandler{Handler: slog.NewTextHandler(os.Stderr, nil), to: os.NewFile(pointsFD, "points"), kill: k, die: dieAfter}),
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
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
