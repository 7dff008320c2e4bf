package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/millrace-io/millrace/integration/kafka"
	"github.com/millrace-io/millrace/integration/peer"
)

// runner runs single measurements.
type runner struct {
	settings
	dir  string // of brokers and jars
	work string // of state and of the compiled program; removed at the end
	peer *peer.Peer
}

func (r *runner) close() { os.RemoveAll(r.work) }

// one measures one workload on one side: fresh broker, input, run, check, result line.
func (r *runner) one(ctx context.Context, rep int, side, workload string) (err error) {
	cfg := kafka.Config{Dir: r.dir, Name: "bench", Fresh: true, Bench: true}
	if r.pin {
		cfg.CPUs = "1"
	}
	broker, err := kafka.Start(ctx, cfg)
	if err != nil {
		return err
	}
	// killed, not stopped: its data is removed by the next run
	defer func() { err = errors.Join(err, broker.Kill()) }()
	input := r.input(workload)
	t0, err := r.load(ctx, broker.Addr(), input)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	input = append(input, "--bootstrap", broker.Addr())
	before := takeSample(broker.PID())
	line, err := r.measure(ctx, side, workload, broker.Addr())
	if err != nil {
		return err
	}
	after := takeSample(broker.PID())
	if text, err := r.bench(ctx, append([]string{"verify", "--of", workload, "--t0-ms", t0}, input...)); err != nil {
		return fmt.Errorf("the sink differs from the replay: %w\n%s", err, text)
	}
	line["side"], line["rep"] = side, rep
	line["broker_cpu_ms"] = after.broker - before.broker
	if app, ok := line["total_cpu_ms"].(float64); ok {
		line["other_cpu_ms"] = after.machine - before.machine - (after.broker - before.broker) - int64(app)
	}
	return r.record(line)
}

// input is what load and verify are told alike.
func (r *runner) input(workload string) []string {
	records := int(3_000_000 * r.scale)
	if workload == "wordcount" {
		return []string{"--load-kind", "lines", "--zipf", "true", "--records", strconv.Itoa(records / 10)}
	}
	return []string{"--records", strconv.Itoa(records)}
}

// load writes the input and returns the event time of its first record.
func (r *runner) load(ctx context.Context, addr string, input []string) (t0 string, err error) {
	text, err := r.bench(ctx, append([]string{"load", "--bootstrap", addr}, input...))
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	line, ok := lineOf(text, "loaded")
	if !ok {
		return "", fmt.Errorf("no result:\n%s", text)
	}
	return line["t0_ms"].(json.Number).String(), nil
}

// bench runs our own program unmeasured.
func (r *runner) bench(ctx context.Context, args []string) ([]byte, error) {
	return exec.CommandContext(ctx, r.app, args...).CombinedOutput()
}

// measure runs the measured program and returns its result line.
func (r *runner) measure(ctx context.Context, side, workload, addr string) (map[string]any, error) {
	state := filepath.Join(r.work, "state")
	defer os.RemoveAll(state)
	expect := []string{"--expect", strconv.Itoa(int(3_000_000 * r.scale))}
	if workload == "wordcount" { // the source is through long before the last word is counted
		expect[0] = "--expect-out"
	}
	args := append([]string{workload, "--bootstrap", addr, "--state-dir", state, "--guarantee", r.guarantee,
		"--commit-ms", strconv.Itoa(r.commitMS), "--block-cache-mb", "128", "--memtable-mb", "64", "--timeout-s", "300"}, expect...)
	if side == "go" && r.profiles != "" {
		args = append(args, "--cpu-profile", filepath.Join(r.profiles, workload+"-"+r.guarantee+".prof"))
	}
	var prefix []string
	if r.pin {
		prefix = []string{"taskset", "-c", "0"}
	}
	var cmd *exec.Cmd
	if side == "peer" {
		cmd = r.peer.Command(ctx, prefix, nil, args...)
	} else {
		whole := append(append(prefix, r.app), args...)
		cmd = exec.CommandContext(ctx, whole[0], whole[1:]...)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	text, err := cmd.Output()
	line, ok := lineOf(text, "done")
	if err != nil || !ok {
		return nil, fmt.Errorf("no result (%w); the end of its output:\n%s%s", errors.Join(err, context.Cause(ctx)), lastLines(text, 3), lastLines(errs.Bytes(), 10))
	}
	for name, v := range line {
		if n, ok := v.(json.Number); ok {
			line[name], _ = n.Float64()
		}
	}
	return line, nil
}

// lineOf finds the JSON line of an event.
func lineOf(text []byte, event string) (map[string]any, bool) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber() // event times do not fit a float exactly
		var line map[string]any
		if d.Decode(&line) == nil && line["ev"] == event {
			return line, true
		}
	}
	return nil, false
}

func lastLines(text []byte, n int) string {
	lines := strings.SplitAfter(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "") + "\n"
}

// record appends a result line to the file and shows it.
func (r *runner) record(line map[string]any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s\n", text)
	f, err := os.OpenFile(r.out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// sample is processor time so far, in milliseconds: of the broker and of the whole machine.
type sample struct{ broker, machine int64 }

// ticksPerSecond is USER_HZ, which the kernel's interface fixes at 100.
const ticksPerSecond = 100

func takeSample(broker int) sample {
	var s sample
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", broker)); err == nil {
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		s.broker = sumTicks(fields[11:13]) // utime and stime, counted after the name
	}
	if text, err := os.ReadFile("/proc/stat"); err == nil {
		all, _, _ := strings.Cut(string(text), "\n")
		if fields := strings.Fields(all); len(fields) > 8 {
			s.machine = sumTicks(fields[1:4]) + sumTicks(fields[6:8]) // all but idle, waiting for disks and stolen
		}
	}
	return s
}

func sumTicks(fields []string) int64 {
	var sum int64
	for _, f := range fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if err == nil {
			sum += n
		}
	}
	return sum * 1000 / ticksPerSecond
}
