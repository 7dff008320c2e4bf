package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-io/millrace/integration/proc"
	"github.com/millrace-io/millrace/streams"
)

// workerConfig is what a word count in a process of its own is told.
type workerConfig struct {
	Job                    job
	Brokers                []string
	ClientID, Dir, REST    string
	ExactlyOnce            bool
	FlushEvery, CommitTime time.Duration
	Session                time.Duration // 0: the job's
	TransactionTimeout     time.Duration // 0: the default
}

// workerMain is the process. It returns its exit status.
func workerMain(config string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := work(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	return 0
}

func work(ctx context.Context, config string) error {
	var w workerConfig
	if err := json.Unmarshal([]byte(config), &w); err != nil {
		return err
	}
	bootstrap = w.Brokers
	guarantee := streams.AtLeastOnce
	if w.ExactlyOnce {
		guarantee = streams.ExactlyOnce
	}
	cfg := w.Job.config(w.ClientID, w.Dir, guarantee)
	cfg.RESTAddr, cfg.StateFlushInterval = w.REST, w.FlushEvery
	if w.CommitTime > 0 {
		cfg.CommitInterval = w.CommitTime
	}
	cfg.TransactionTimeout = w.TransactionTimeout
	if w.Session > 0 {
		cfg.SessionTimeout = w.Session
	}
	b, _ := w.Job.topology()
	app, err := streams.New(b, cfg)
	if err != nil {
		return err
	}
	return app.Run(ctx)
}

// worker is a word count in a process of its own.
type worker struct {
	*proc.Process
	cfg  workerConfig
	logs string
}

func newWorker(t *testing.T, j job, clientID string, guarantee streams.Guarantee) *worker {
	t.Helper()
	addr, err := proc.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return &worker{logs: t.TempDir(), cfg: workerConfig{Job: j, Brokers: bootstrap, ClientID: clientID, Dir: t.TempDir(), REST: addr,
		ExactlyOnce: guarantee == streams.ExactlyOnce, FlushEvery: 2 * time.Second}}
}

func (w *worker) rest() proc.REST { return proc.REST(w.cfg.REST) }

// start runs the process, again after it was killed.
func (w *worker) start(t *testing.T) {
	t.Helper()
	config, err := json.Marshal(w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(workerEnv, string(config))
	w.Process, err = proc.Start(w.logs, w.cfg.ClientID, self, nil)
	os.Unsetenv(workerEnv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Kill)
}

func (w *worker) awaitReady(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := w.Await(ctx, "state RUNNING", func() (bool, error) { return w.rest().Ready(ctx) }); err != nil {
		t.Fatal(err)
	}
}
