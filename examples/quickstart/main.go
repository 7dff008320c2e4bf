// Command quickstart is the smallest whole Millrace application: it counts the words of the topic "lines" into
// the topic "counts".
//
//	go run ./cmd/millrace dev -topic lines:4 -topic counts:4      # a Kafka cluster at 127.0.0.1:9092
//	go run ./examples/quickstart [broker ...]                     # this program; default 127.0.0.1:9092
//
// It runs until Ctrl-C, which is a graceful stop. Its state stays in the directory quickstart of the system's temporary one;
// remove that when you start another cluster.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

func main() {
	brokers := os.Args[1:]
	if len(brokers) == 0 {
		brokers = []string{"127.0.0.1:9092"}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, brokers, filepath.Join(os.TempDir(), "quickstart")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, brokers []string, dir string) error {
	b := streams.NewBuilder()
	b.Stream("lines", serde.Bytes, serde.String).
		FlatMapValues(strings.Fields).
		GroupBy(func(_ []byte, w string) string { return w }, serde.String).
		Count("word-counts").
		ToStream().To("counts", serde.String, serde.Int64)

	app, err := streams.New(b, streams.Config{AppID: "wordcount", ClientID: "wc-0", Brokers: brokers, StateDir: dir, Threads: 2})
	if err != nil {
		return err
	}
	return app.Run(ctx) // blocks; cancelling ctx is a graceful stop
}
