package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/check"
	"github.com/millrace-io/millrace/integration/proc"
)

// stage is what every run has: a cluster, word counts on it, their input, and a reader of their output.
type stage struct {
	seed  uint64
	exact bool // exactly-once
	began time.Time
	out   func(line string)

	dir, self string
	broker    string
	cluster   *child
	workers   []*worker
	client    *kgo.Client
	feed      *feed
	follower  *check.Follower
}

// A child is a process with the points that it reaches.
type child struct {
	*proc.Process
	points *trace
}

// A worker is a place for a word count, whose process may be killed and started again.
type worker struct {
	*child // nil while it does not run
	name   string
	rest   proc.REST
}

func (s *stage) say(format string, args ...any) {
	s.out(fmt.Sprintf("%6.1f s  %s", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...)))
}

// perform sets the stage, has a run played on it, and clears it away; what a failure needs is kept.
func (s *stage) perform(ctx context.Context, workers int, play func(context.Context) error) (err error) {
	s.began = time.Now()
	if s.dir, err = os.MkdirTemp("", "millrace-chaos-"); err != nil {
		return err
	}
	defer func() {
		s.close()
		if err == nil {
			os.RemoveAll(s.dir)
		} else {
			s.say("logs and data are in %s", s.dir)
		}
	}()
	if err := s.open(ctx, workers); err != nil {
		return err
	}
	return play(ctx)
}

// open starts the cluster and what watches it.
func (s *stage) open(ctx context.Context, workers int) (err error) {
	if s.self, err = os.Executable(); err != nil {
		return err
	}
	if s.broker, err = proc.FreeAddr(); err != nil {
		return err
	}
	for i := range workers {
		rest, err := proc.FreeAddr()
		if err != nil {
			return err
		}
		s.workers = append(s.workers, &worker{name: fmt.Sprintf("worker-%d", i), rest: proc.REST(rest)})
	}
	if err := s.startCluster(kill{}); err != nil {
		return err
	}
	if err := s.serving(ctx); err != nil {
		return err
	}
	s.client, err = kgo.NewClient(kgo.SeedBrokers(s.broker), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	s.feed = newFeed(s.client, s.seed)
	s.follower, err = check.Follow(counts, kgo.SeedBrokers(s.broker), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	return err
}

func (s *stage) close() {
	if s.feed != nil {
		s.feed.stop()
	}
	for _, w := range s.workers {
		if w.child != nil {
			w.Kill()
		}
	}
	if s.follower != nil {
		s.follower.Close()
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.cluster != nil {
		s.cluster.Kill()
	}
}

func (s *stage) clusterDir() string { return filepath.Join(s.dir, "cluster") }

// startCluster starts the cluster, again on the same address and directory; it will die as planned. It may not serve yet.
func (s *stage) startCluster(k kill) (err error) {
	s.cluster, err = s.start("cluster", k, clusterVerb, "-listen", s.broker, "-data-dir", s.clusterDir())
	return err
}

// serving waits until the cluster serves.
func (s *stage) serving(ctx context.Context) error {
	select {
	case <-s.cluster.points.serving:
		return nil
	case <-s.cluster.Ended():
		return fmt.Errorf("the cluster ended (%v) before it served; the end of its log:\n%s", s.cluster.Err(), s.cluster.Tail(15))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// startWorker starts a word count that will die as planned; the zero kill lets it live.
func (s *stage) startWorker(w *worker, k kill) (err error) {
	dir := filepath.Join(s.dir, w.name)
	if k.wipe {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	w.child, err = s.start(w.name, k, workerVerb, "-name", w.name, "-brokers", s.broker, "-dir", dir, "-rest", string(w.rest),
		fmt.Sprintf("-exactly-once=%t", s.exact))
	return err
}

// start runs this program as something else, with a pipe for the points that it reaches.
func (s *stage) start(name string, k kill, args ...string) (*child, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if k.point != "" {
		args = append(args, "-point", k.point, "-nth", fmt.Sprint(k.nth), "-delay", k.delay.String(), "-markers", fmt.Sprint(k.markers))
	}
	p, err := proc.Start(s.dir, name, s.self, []*os.File{write}, args...)
	write.Close()
	if err != nil {
		read.Close()
		return nil, err
	}
	return &child{p, watchPoints(read)}, nil
}

// ready waits until every word count has its tasks.
func (s *stage) ready(ctx context.Context) error {
	for _, w := range s.workers {
		if err := w.Await(ctx, "state RUNNING", func() (bool, error) { return w.rest.Ready(ctx) }); err != nil {
			return err
		}
	}
	return nil
}
