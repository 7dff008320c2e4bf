package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/streams"
)

// job is one run: the application, what feeds it and what watches its output.
type job struct {
	o       options
	brokers []string
	cfg     streams.Config
	app     *streams.App
	files   []string
	feed    *feed
	tally   *tally
	before  int64 // words of lines that were there already

	printing sync.Mutex
	stdout   io.Writer
	stderr   io.Writer
}

func newJob(ctx context.Context, o options, brokers []string, stdout, stderr io.Writer) (*job, error) {
	j := &job{o: o, brokers: brokers, files: o.files, stdout: stdout, stderr: stderr}
	var err error
	if len(j.files) == 0 && !o.noInput {
		if j.files, err = ownFiles(); err != nil {
			return nil, err
		}
	}
	isolation := kgo.ReadUncommitted()
	if o.eos {
		isolation = kgo.ReadCommitted()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()),
		kgo.ConsumeTopics(countsTopic), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(isolation))
	if err != nil {
		return nil, err
	}
	j.feed = &feed{client: client, say: j.say}
	j.tally = &tally{client: client, counts: map[string]int64{}}
	if err := createTopics(ctx, client, int32(o.partitions)); err != nil {
		client.Close()
		return nil, err
	}
	if j.before, err = wordsIn(ctx, brokers); err != nil {
		client.Close()
		return nil, err
	}
	j.cfg = o.config(brokers, stderr)
	if j.app, err = streams.New(topology(), j.cfg); err != nil {
		client.Close()
		return nil, err
	}
	return j, nil
}

func (j *job) close() { j.feed.client.Close() }

// createTopics creates the two topics unless they exist.
func createTopics(ctx context.Context, client *kgo.Client, partitions int32) error {
	answers, err := kadm.NewClient(client).CreateTopics(ctx, partitions, -1, nil, linesTopic, countsTopic)
	if err != nil {
		return fmt.Errorf("create topics at the brokers: %w", err)
	}
	for _, a := range answers.Sorted() {
		if a.Err != nil && !errors.Is(a.Err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w: %s", a.Topic, a.Err, a.ErrMessage)
		}
	}
	return nil
}

// run runs everything until the input is counted (-once), ctx ends or something fails.
func (j *job) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	start := func(part func(context.Context) error) {
		parts.Go(func() {
			if err := part(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	var fedErr error
	fed := make(chan struct{})
	start(j.app.Run)
	start(j.tally.run)
	start(func(ctx context.Context) error {
		defer close(fed)
		if !j.o.noInput {
			fedErr = j.feed.run(ctx, j.files)
		}
		if errors.Is(fedErr, errUnread) {
			return nil // told at the end: what could be read is counted first
		}
		return fedErr
	})
	j.printAddresses()
	done := j.follow(ctx, fed)
	if done && !j.o.noInput {
		j.printTop()
	}
	if done && !j.o.once {
		j.say("waiting for more lines in the topic %s; Ctrl-C ends", linesTopic)
		<-ctx.Done()
	}
	cause := context.Cause(ctx)
	cancel(nil)
	if !j.o.once || !done {
		j.say("stopping: committing and closing")
	}
	parts.Wait()
	switch {
	case cause != nil && !errors.Is(cause, context.Canceled):
		return cause
	case done && j.o.once:
		return fedErr
	}
	return nil
}

// follow prints progress until everything that was fed is counted; it returns false if ctx ended before.
func (j *job) follow(ctx context.Context, fed <-chan struct{}) bool {
	began, tick := time.Now(), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	nextLine := began.Add(time.Second)
	complete := false
	for {
		select {
		case <-ctx.Done():
			return false
		case <-fed:
			complete, fed = true, nil
		case now := <-tick.C:
			counted, want := j.tally.total(), j.before+j.feed.words.Load()
			if complete && counted >= want {
				return true
			}
			if now.After(nextLine) {
				nextLine = now.Add(time.Second)
				j.say("%3.0f s: %d lines read, %d of %d words counted", now.Sub(began).Seconds(), j.feed.lines.Load(), counted, want)
			}
		}
	}
}

func (j *job) printAddresses() {
	if j.cfg.RESTAddr == "" {
		return
	}
	var b strings.Builder
	for _, path := range []string{"/v1/metadata", "/v1/instances", "/readyz", "/metrics"} {
		fmt.Fprintf(&b, " http://%s%s", j.cfg.RESTAddr, path)
	}
	j.say("REST:%s", b.String())
}

func (j *job) printTop() {
	list, distinct := j.tally.top(j.o.top)
	if distinct == 0 {
		j.say("there were no words")
		return
	}
	j.printing.Lock()
	defer j.printing.Unlock()
	fmt.Fprintf(j.stdout, "%d words, %d different; the most frequent:\n", j.tally.total(), distinct)
	for _, w := range list {
		fmt.Fprintf(j.stdout, "%10d  %s\n", w.n, shortened(w.word))
	}
}

// shortened keeps what is no word of a language, such as a line of 50 MB without a space, off the terminal.
func shortened(word string) string {
	const most = 60
	count := 0
	for at := range word {
		if count++; count > most {
			return word[:at] + "…"
		}
	}
	return word
}

// say prints a line about the run, from any goroutine.
func (j *job) say(format string, args ...any) {
	j.printing.Lock()
	defer j.printing.Unlock()
	fmt.Fprintf(j.stderr, format+"\n", args...)
}
