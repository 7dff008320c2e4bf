package kafka

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	readyLine = "Kafka Server started"
	// startTimeout bounds the wait for the ready line: 3 s on a quiet machine.
	startTimeout = 90 * time.Second
	// stopTimeout bounds a controlled shutdown.
	stopTimeout = 30 * time.Second
	// pollEvery is how often log and process are looked at: neither can be waited for by a process that is
	// not the parent.
	pollEvery = 20 * time.Millisecond
)

// ErrNotRunning is returned by Find when no broker of that name runs.
var ErrNotRunning = errors.New("broker is not running")

// Broker is one Apache Kafka process. Its methods may be called from any goroutine, but a caller that stops
// and starts it concurrently gets what it asked for.
type Broker struct {
	cfg Config
	rec record
}

// Start formats the data directory if it is new, starts the broker and returns once it is ready. Starting a
// stopped or killed broker of the same name again continues with its data. The error has the end of the
// broker's log.
func Start(ctx context.Context, cfg Config) (*Broker, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	java, err := Java()
	if err != nil {
		return nil, err
	}
	cp, err := Classpath(ctx, cfg.Dir)
	if err != nil {
		return nil, err
	}
	if b, err := Find(cfg.Dir, cfg.Name); err == nil {
		return nil, fmt.Errorf("kafka: broker %s already runs at %s (pid %d)", cfg.Name, b.Addr(), b.rec.PID)
	}
	if cfg.Fresh {
		if err := os.RemoveAll(cfg.home()); err != nil {
			return nil, fmt.Errorf("kafka: remove old data: %w", err)
		}
	}
	logging, err := LoggingFlag(cfg.Dir)
	if err != nil {
		return nil, err
	}
	jvm := jvm{java, logging, cp}
	if err := cfg.prepare(ctx, jvm); err != nil {
		return nil, err
	}
	b := &Broker{cfg: cfg, rec: record{Port: cfg.Port, SSLPort: cfg.SSLPort, ControllerPort: cfg.ControllerPort}}
	if err := b.spawn(jvm); err != nil {
		return nil, err
	}
	if err := b.awaitReady(ctx); err != nil {
		b.Kill()
		return nil, err
	}
	return b, nil
}

// Find attaches to the running broker of that name, whoever started it. Empty arguments mean RunDir() and
// "single". The error is ErrNotRunning (wrapped) if there is none.
func Find(dir, name string) (*Broker, error) {
	cfg, err := Config{Dir: dir, Name: name}.withDefaults()
	if err != nil {
		return nil, err
	}
	rec, err := readRecord(cfg.recordFile())
	if err == nil && !rec.alive() {
		err = ErrNotRunning
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: broker %s in %s: %w", cfg.Name, cfg.Dir, err)
	}
	cfg.Port, cfg.SSLPort, cfg.ControllerPort = rec.Port, rec.SSLPort, rec.ControllerPort
	return &Broker{cfg: cfg, rec: rec}, nil
}

// Addr is the address for clients, host:port.
func (b *Broker) Addr() string { return address(b.rec.Port) }

// PID is the process id of the broker.
func (b *Broker) PID() int { return b.rec.PID }

// LogFile is the path of the broker's log; the group coordinator logs there at INFO.
func (b *Broker) LogFile() string { return b.cfg.logFile() }

// prepare chooses ports, writes the configuration and formats the data directory of a new broker.
func (c *Config) prepare(ctx context.Context, vm jvm) error {
	if err := os.MkdirAll(c.home(), 0o755); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	if old, err := readRecord(c.recordFile()); err == nil { // same ports again: clients and quorum know them
		c.ControllerPort = old.ControllerPort
		c.Port, c.SSLPort = cmp.Or(c.Port, old.Port), cmp.Or(c.SSLPort, old.SSLPort)
	}
	if err := c.choosePorts(); err != nil {
		return err
	}
	if err := c.write(); err != nil {
		return err
	}
	if _, err := os.Stat(c.dataDir()); err == nil {
		return nil // formatted before
	}
	if c.Secure {
		if err := c.writeSecurity(); err != nil {
			return err
		}
	}
	return c.format(ctx, vm)
}

// format writes the identity and the first metadata snapshot of a cluster of one node. The features are said
// outright because an older release does not set them by itself: KIP-848 and KIP-1071 groups, and the
// epoch bump per transaction of KIP-890.
func (c *Config) format(ctx context.Context, vm jvm) error {
	id, err := clusterID()
	if err != nil {
		return err
	}
	args := []string{"format", "--config", c.properties(), "--cluster-id", id, "--standalone", "--ignore-formatted",
		"--feature", "group.version=1", "--feature", "transaction.version=2", "--feature", "streams.version=1"}
	if c.Secure {
		args = append(args, scramUsers()...)
	}
	line := vm.line([]string{"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}, "kafka.tools.StorageTool", args...)
	if text, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput(); err != nil {
		os.RemoveAll(c.dataDir())
		return fmt.Errorf("kafka: format %s: %w\n%s", c.dataDir(), err, tail(text, 20))
	}
	return nil
}

// jvm is what every Java program here is started with.
type jvm struct{ java, logging, classpath string }

// line is a command line for one class.
func (vm jvm) line(flags []string, class string, args ...string) []string {
	line := append([]string{vm.java}, flags...)
	line = append(line, vm.logging, "-Dlog4j2.disable.jmx=true", "-cp", vm.classpath, class)
	return append(line, args...)
}

// spawn starts the process in a session of its own, with its output in the log file.
func (b *Broker) spawn(vm jvm) error {
	log, err := os.Create(b.cfg.logFile())
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	defer log.Close()
	args := vm.line(b.cfg.flags(), "kafka.Kafka", b.cfg.properties())
	if b.cfg.CPUs != "" {
		args = append([]string{"taskset", "-c", b.cfg.CPUs}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("kafka: start broker %s: %w", b.cfg.Name, err)
	}
	go cmd.Wait() // reaps it; ends with the broker, and with this process at the latest
	b.rec.PID = cmd.Process.Pid
	b.rec.Started, _ = startOf(b.rec.PID)
	return b.rec.write(b.cfg.recordFile())
}

func (b *Broker) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ready := func() bool {
		text, err := os.ReadFile(b.cfg.logFile())
		return err == nil && bytes.Contains(text, []byte(readyLine))
	}
	err := poll(ctx, func() bool { return ready() || !b.rec.alive() })
	if err == nil && ready() {
		return nil
	}
	text, _ := os.ReadFile(b.cfg.logFile())
	why := "has ended"
	if err != nil {
		why = "is not ready: " + err.Error()
	}
	return fmt.Errorf("kafka: broker %s at %s %s; the end of %s:\n%s", b.cfg.Name, b.Addr(), why,
		b.cfg.logFile(), strings.TrimSpace(tail(text, 20)))
}

// Stop asks for a controlled shutdown and waits for its end, up to 30 s. Stopping a broker that has ended is
// no error.
func (b *Broker) Stop(ctx context.Context) error {
	if !b.signal(syscall.SIGTERM) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := poll(ctx, func() bool { return !b.rec.alive() }); err != nil {
		return fmt.Errorf("kafka: broker %s (pid %d) did not stop: %w", b.cfg.Name, b.rec.PID, err)
	}
	return nil
}

// Kill ends the broker with SIGKILL and returns when it is gone. Its data stays.
func (b *Broker) Kill() error {
	if !b.signal(syscall.SIGKILL) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := poll(ctx, func() bool { return !b.rec.alive() }); err != nil {
		return fmt.Errorf("kafka: broker %s (pid %d) survived SIGKILL: %w", b.cfg.Name, b.rec.PID, err)
	}
	return nil
}

// Pause stops the broker's process without ending it, as a long pause of the machine would; Resume lets it
// go on. Both say whether there was a process to signal.
func (b *Broker) Pause() bool { return b.signal(syscall.SIGSTOP) }

// Resume lets a paused broker go on.
func (b *Broker) Resume() bool { return b.signal(syscall.SIGCONT) }

func (b *Broker) signal(sig syscall.Signal) bool {
	return b.rec.alive() && syscall.Kill(b.rec.PID, sig) == nil
}

// poll waits until done says so, or ctx ends.
func poll(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
