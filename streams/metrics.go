package streams

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/thread"
)

// Gatherer returns the application's metrics, from a registry of its own. They are read from counters when somebody asks;
// nothing is done for them per record.
func (a *App) Gatherer() prometheus.Gatherer {
	if p := a.process.Load(); p != nil {
		return p.registry
	}
	return prometheus.NewRegistry()
}

func newRegistry(p *process) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&collector{process: p},
	)
	return r
}

// metric is one exported number of a thread.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*thread.Stats) float64
}

func threadDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("millrace_"+name, help, append([]string{"thread"}, labels...), nil)
}

func counter(name, help string, value func(*thread.Stats) int64) metric {
	return metric{threadDesc(name, help), prometheus.CounterValue, func(s *thread.Stats) float64 { return float64(value(s)) }}
}

var threadMetrics = []metric{
	counter("records_in_total", "Records fetched and given to tasks.", func(s *thread.Stats) int64 { return s.RecordsIn.Load() }),
	counter("records_processed_total", "Records that tasks have taken, skipped ones included.", func(s *thread.Stats) int64 { return s.Processed.Load() }),
	counter("records_out_total", "Records produced, changelogs not included.", func(s *thread.Stats) int64 { return s.RecordsOut.Load() }),
	counter("changelog_records_total", "Records produced to changelogs.", func(s *thread.Stats) int64 { return s.Changelog.Load() }),
	counter("expired_window_writes_total", "Writes to windows that were out of retention, left out.", func(s *thread.Stats) int64 { return s.Expired.Load() }),
	counter("stale_records_total", "Fetched records of partitions that had gone away; their owner reads them.", func(s *thread.Stats) int64 { return s.Stale.Load() }),
	counter("commits_total", "Commits.", func(s *thread.Stats) int64 { return s.Commits.Load() }),
	counter("commits_put_off_total", "Commits that had to wait for a rebalance or an answer.", func(s *thread.Stats) int64 { return s.PutOff.Load() }),
	counter("transactions_aborted_total", "Transactions aborted; their input was processed again.", func(s *thread.Stats) int64 { return s.Aborts.Load() }),
	counter("assignments_lost_total", "Assignments lost without a chance to commit.", func(s *thread.Stats) int64 { return s.Lost.Load() }),
	counter("positions_reset_total", "Partitions whose position was out of range and was reset.", func(s *thread.Stats) int64 { return s.Resets.Load() }),
	counter("state_close_errors_total", "Task states that did not close cleanly.", func(s *thread.Stats) int64 { return s.CloseErrors.Load() }),
	{threadDesc("commit_seconds_total", "Time spent in commits."), prometheus.CounterValue,
		func(s *thread.Stats) float64 { return time.Duration(s.CommitNanos.Load()).Seconds() }},
	{threadDesc("commit_seconds_max", "The longest commit."), prometheus.GaugeValue,
		func(s *thread.Stats) float64 { return time.Duration(s.CommitMaxNanos.Load()).Seconds() }},
	{threadDesc("uncommitted_bytes", "State written and not committed."), prometheus.GaugeValue,
		func(s *thread.Stats) float64 { return float64(s.UncommittedBytes.Load()) }},
}

var (
	droppedDesc = threadDesc("dropped_records_total", "Records, or parts of them, that operators left out.", "reason")
	stateDesc   = threadDesc("thread_state", "1 for the state that the thread is in.", "state")
	appDesc     = prometheus.NewDesc("millrace_state", "1 for the state that the application is in.", []string{"state"}, nil)

	restoreDescs = []struct {
		desc  *prometheus.Desc
		kind  prometheus.ValueType
		value func(*thread.Progress) int64
	}{
		{prometheus.NewDesc("millrace_restoring_tasks", "Tasks whose state is being restored.", nil, nil), prometheus.GaugeValue,
			func(p *thread.Progress) int64 { return p.Tasks.Load() }},
		{prometheus.NewDesc("millrace_restore_remaining_records", "Changelog offsets still to be restored.", nil, nil), prometheus.GaugeValue,
			func(p *thread.Progress) int64 { return p.Remaining.Load() }},
		{prometheus.NewDesc("millrace_restored_records_total", "Changelog records restored.", nil, nil), prometheus.CounterValue,
			func(p *thread.Progress) int64 { return p.Records.Load() }},
		{prometheus.NewDesc("millrace_restored_bytes_total", "Bytes of keys and values restored.", nil, nil), prometheus.CounterValue,
			func(p *thread.Progress) int64 { return p.Bytes.Load() }},
		{prometheus.NewDesc("millrace_state_rebuilds_total", "Local states given up and rebuilt from their changelogs.", nil, nil), prometheus.CounterValue,
			func(p *thread.Progress) int64 { return p.Rebuilds.Load() }},
	}
)

// collector reads the counters of a process.
type collector struct{ process *process }

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range threadMetrics {
		ch <- m.desc
	}
	for _, m := range restoreDescs {
		ch <- m.desc
	}
	ch <- droppedDesc
	ch <- stateDesc
	ch <- appDesc
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	for _, t := range c.process.threads() {
		c.collectThread(ch, t)
	}
	if r := c.process.restorer; r != nil {
		for _, m := range restoreDescs {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.value(r.Progress())))
		}
	}
	ch <- prometheus.MustNewConstMetric(appDesc, prometheus.GaugeValue, 1, c.process.app.State().String())
}

func (c *collector) collectThread(ch chan<- prometheus.Metric, t *thread.Thread) {
	status, stats := t.Status(), t.Stats()
	for _, m := range threadMetrics {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(stats), status.Name)
	}
	for reason := range topology.DropReasons {
		ch <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(stats.Drops[reason].Load()), status.Name, reason.String())
	}
	ch <- prometheus.MustNewConstMetric(stateDesc, prometheus.GaugeValue, 1, status.Name, status.State.String())
}
