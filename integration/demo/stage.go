package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/proc"
)

const (
	appID       = "wordcount"
	lines       = "lines"
	counts      = "counts"
	partitions  = 4
	threads     = 2
	sessionTime = "30s" // the killed process must be back by then
	flushEvery  = "4s"  // what a kill takes back from disk is at most this old
)

// stage is the processes and what is needed to watch them.
type stage struct {
	dir             string
	millrace, words string // programs
	broker          string
	cluster         *proc.Process
	workers         []*worker
	client          *kgo.Client
	admin           *kadm.Client
}

// worker is one process of the word count.
type worker struct {
	clientID string
	rest     proc.REST // fixed: an endpoint that changes would rightly force a rejoin
	dir      string
	*proc.Process
}

func (s *stage) build(ctx context.Context, dir string) (err error) {
	s.dir = dir
	if s.millrace, err = proc.Build(ctx, dir, "cmd/millrace"); err != nil {
		return err
	}
	s.words, err = proc.Build(ctx, dir, "examples/wordcount")
	return err
}

// startCluster runs millrace dev.
func (s *stage) startCluster(ctx context.Context) error {
	var err error
	if s.broker, err = proc.FreeAddr(); err != nil {
		return err
	}
	s.cluster, err = proc.Start(s.dir, "millrace-dev", s.millrace, nil, "dev", "-listen", s.broker, "-data-dir", filepath.Join(s.dir, "cluster"),
		"-topic", fmt.Sprintf("%s:%d", lines, partitions), "-topic", fmt.Sprintf("%s:%d", counts, partitions))
	if err != nil {
		return err
	}
	if err := s.cluster.AwaitLog(ctx, "bootstrap.servers="); err != nil {
		return err
	}
	s.client, err = kgo.NewClient(kgo.SeedBrokers(s.broker), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.MaxBufferedRecords(50_000))
	if err != nil {
		return err
	}
	s.admin = kadm.NewClient(s.client)
	return nil
}

// addWorker names a process of the word count; start runs it.
func (s *stage) addWorker(clientID string) error {
	addr, err := proc.FreeAddr()
	if err != nil {
		return err
	}
	s.workers = append(s.workers, &worker{clientID: clientID, rest: proc.REST(addr), dir: filepath.Join(s.dir, clientID)})
	return nil
}

func (s *stage) start(w *worker, eos bool) (err error) {
	w.Process, err = proc.Start(s.dir, w.clientID, s.words, nil, "-no-input", "-brokers", s.broker, "-app-id", appID, "-client-id", w.clientID,
		"-threads", fmt.Sprint(threads), "-rest", string(w.rest), "-dir", w.dir, "-session", sessionTime, "-flush", flushEvery,
		fmt.Sprintf("-eos=%t", eos), "-v")
	return err
}

// awaitReady waits until a worker is in RUNNING.
func (w *worker) awaitReady(ctx context.Context) error {
	return w.Await(ctx, "state RUNNING", func() (bool, error) { return w.rest.Ready(ctx) })
}

// awaitFlush waits until the tasks that count these partitions have written to their disk after a moment. Directories of tasks
// that the worker had for a moment while the group came together stay behind and are never written again.
func (w *worker) awaitFlush(ctx context.Context, partitions []int, after time.Time) error {
	return w.Await(ctx, "flush of all state", func() (bool, error) {
		latest := map[int]time.Time{} // by partition: the newest table
		err := filepath.WalkDir(w.dir, func(name string, entry fs.DirEntry, err error) error {
			var partition int
			if err != nil || filepath.Ext(name) != ".sst" || !scanTask(filepath.Base(filepath.Dir(name)), &partition) {
				return ignoreGone(err)
			}
			info, err := entry.Info()
			if err == nil && info.ModTime().After(latest[partition]) {
				latest[partition] = info.ModTime()
			}
			return ignoreGone(err)
		})
		for _, p := range partitions {
			if latest[p].Before(after) {
				return false, err
			}
		}
		return true, err
	})
}

// ignoreGone passes over files that a store removes while it is looked at.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// stateful lists the partitions whose counts a worker keeps.
func stateful(g proc.Group, w *worker) (partitions []int) {
	for id, tasks := range g.Tasks {
		for _, task := range tasks {
			if p := 0; strings.HasPrefix(id, w.clientID+"-") && scanTask(task, &p) {
				partitions = append(partitions, p)
			}
		}
	}
	slices.Sort(partitions)
	return partitions
}

// scanTask reads the partition of a task that counts; tasks that split lines are named after their topic.
func scanTask(task string, partition *int) bool {
	at := strings.LastIndexByte(task, '_')
	_, err := fmt.Sscanf(task[at+1:], "%d", partition)
	return err == nil && at > 0 && task[:at] != lines
}

// ask asks every worker about its own threads.
func (s *stage) ask(ctx context.Context) (proc.Group, error) {
	rests := make([]proc.REST, len(s.workers))
	for i, w := range s.workers {
		rests[i] = w.rest
	}
	return proc.AskGroup(ctx, rests...)
}

// killAll ends what still runs.
func (s *stage) killAll() {
	for _, w := range s.workers {
		if w.Process != nil {
			w.Kill()
		}
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.cluster != nil {
		s.cluster.Kill()
	}
}
