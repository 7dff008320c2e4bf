package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/millrace-io/millrace/streams/serde"
)

// The ten lines, run on an embedded cluster: a line goes in, counts come out.
func Example() {
	c, err := cluster.Start(cluster.Topic("lines", 4), cluster.Topic("counts", 4))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	dir, err := os.MkdirTemp("", "quickstart-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, c.Brokers(), dir)
		stop()
	}()

	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.ConsumeTopics("counts"), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	line := &kgo.Record{Topic: "lines", Value: []byte("to be or not to be")}
	if err := client.ProduceSync(ctx, line).FirstErr(); err != nil {
		log.Fatal(err)
	}

	var counts []string
	for len(counts) < 6 { // every word is one update
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			log.Fatal(err, <-ended)
		}
		for r := range fetches.RecordsAll() {
			n, err := serde.Int64.Decode(r.Value)
			if err != nil {
				log.Fatal(err)
			}
			counts = append(counts, fmt.Sprintf("%s %d", r.Key, n))
		}
	}
	slices.Sort(counts)
	for _, count := range counts {
		fmt.Println(count)
	}
	stop()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	// Output:
	// be 1
	// be 2
	// not 1
	// or 1
	// to 1
	// to 2
}
