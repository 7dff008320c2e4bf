package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var processStart = time.Now()

// errTimeout ends a run that has not reached its record count in time.
var errTimeout = errors.New("timed out")

// meter counts records and prints the JSON lines of a run. Counting is one uncontended atomic addition a
// record; the peer pays for a LongAdder in the same place.
type meter struct {
	o        options
	in, out  counter
	printing sync.Mutex
	w        io.Writer
}

// counter is a number of records and the moment of the first.
type counter struct {
	n     atomic.Int64
	first atomic.Int64 // nanoseconds since processStart
}

func (c *counter) add(n int) {
	if c.n.Add(int64(n)) == int64(n) { // the clock is read for the first records only
		c.first.Store(int64(time.Since(processStart)))
	}
}

func (c *counter) firstMillis() float64 {
	if at := c.first.Load(); at != 0 {
		return float64(at) / 1e6
	}
	return -1
}

// field is one name and value of a JSON line; order is kept.
type field struct {
	name  string
	value any
}

func (m *meter) emit(fields ...field) {
	var b bytes.Buffer
	for i, f := range fields {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(strconv.Quote(f.name))
		b.WriteByte(':')
		if v, ok := f.value.(float64); ok {
			b.WriteString(strconv.FormatFloat(v, 'f', 3, 64))
			continue
		}
		value := json.NewEncoder(&b)
		value.SetEscapeHTML(false) // error texts are read by people
		if err := value.Encode(f.value); err != nil {
			b.WriteString(strconv.Quote(err.Error()))
		}
		b.Truncate(len(bytes.TrimRight(b.Bytes(), "\n")))
	}
	b.WriteString("}\n")
	m.printing.Lock()
	defer m.printing.Unlock()
	m.w.Write(b.Bytes())
}

func (m *meter) progress(event string) {
	m.emit(field{"ev", event}, field{"workload", m.o.workload}, field{"t_ms", sinceStart()},
		field{"in", m.in.n.Load()}, field{"out", m.out.n.Load()}, field{"cpu_ms", cpuMillis()},
		field{"gc_ms", gcMillis()}, field{"rss_kib", procKiB("VmRSS")}, field{"hwm_kib", procKiB("VmHWM")})
}

// watch prints progress until the expected number of records is reached, which it reports as done. It returns
// early with nil when ctx ends and no number was asked for, and with an error when time is up.
func (m *meter) watch(ctx context.Context) error {
	counted, name, expect := &m.in, "in", m.o.expect
	if m.o.expectOut > 0 {
		counted, name, expect = &m.out, "out", m.o.expectOut
	}
	warmAt := int64(float64(expect) * m.o.warm)
	var warm mark
	deadline := time.NewTimer(m.o.timeout)
	defer deadline.Stop()
	report := time.NewTicker(m.o.report)
	defer report.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		seen := counted.n.Load()
		if expect > 0 && warm.at.IsZero() && seen > 0 && seen >= warmAt {
			warm = takeMark(seen)
		}
		if expect > 0 && seen >= expect {
			m.done(name, warm, takeMark(seen))
			if m.o.memProfile != "" {
				return heapProfile(m.o.memProfile)
			}
			return nil
		}
		select {
		case <-look.C:
		case <-report.C:
			m.progress("progress")
		case <-deadline.C:
			m.emit(field{"ev", "timeout"}, field{"in", m.in.n.Load()}, field{"out", m.out.n.Load()})
			return errTimeout
		case <-ctx.Done():
			if expect > 0 {
				return fmt.Errorf("ended at %d of %d records: %w", seen, expect, context.Cause(ctx))
			}
			return nil
		}
	}
}

// mark is a point of a run.
type mark struct {
	at   time.Time
	cpu  int64
	seen int64
}

func takeMark(seen int64) mark { return mark{time.Now(), cpuMillis(), seen} }

func (m *meter) done(counted string, from, to mark) {
	seconds := to.at.Sub(from.at).Seconds()
	cpuSeconds := float64(to.cpu-from.cpu) / 1e3
	records := to.seen - from.seen
	m.emit(field{"ev", "done"}, field{"workload", m.o.workload}, field{"guarantee", m.o.guarantee},
		field{"commit_ms", m.o.commit.Milliseconds()}, field{"threads", m.o.threads},
		field{"in", m.in.n.Load()}, field{"out", m.out.n.Load()}, field{"counted", counted},
		field{"first_in_ms", m.in.firstMillis()}, field{"first_out_ms", m.out.firstMillis()}, field{"t_ms", sinceStart()},
		field{"steady_records", records}, field{"steady_s", seconds}, field{"steady_cpu_s", cpuSeconds},
		field{"steady_per_s", per(records, seconds)}, field{"steady_per_cpu_s", per(records, cpuSeconds)},
		field{"total_cpu_ms", cpuMillis()}, field{"gc_ms", gcMillis()}, field{"hwm_kib", procKiB("VmHWM")},
		field{"gogc", m.o.gogc})
}

func per(records int64, seconds float64) float64 {
	if seconds <= 0 {
		return -1
	}
	return float64(records) / seconds
}

func sinceStart() float64 { return float64(time.Since(processStart)) / 1e6 }

// cpuMillis is user and system time of all threads of this process.
func cpuMillis() int64 {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return -1
	}
	return (ru.Utime.Nano() + ru.Stime.Nano()) / 1e6
}

// gcMillis is the processor time that the garbage collector took, as the Go runtime estimates it.
func gcMillis() int64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64 {
		return -1
	}
	return int64(sample[0].Value.Float64() * 1e3)
}

// procKiB is a field of /proc/self/status in KiB, or -1.
func procKiB(name string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			n, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
			if err != nil {
				return -1
			}
			return n
		}
	}
	return -1
}
