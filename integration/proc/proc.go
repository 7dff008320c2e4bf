// Package proc builds and runs the programs of this module as processes of their own, for the demo and for tests
// that kill them. A process is a child with its output in a file; only children are ever signalled.
package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// module prefixes the import path of every program here.
const module = "github.com/millrace-io/millrace/"

// Build compiles a program of the module, named by its directory ("cmd/millrace"), into dir and returns its path.
func Build(ctx context.Context, dir, program string) (string, error) {
	out := filepath.Join(dir, filepath.Base(program))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, module+program)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", program, err, text)
	}
	return out, nil
}

// FreeAddr is a loopback address that was free a moment ago. Nothing keeps it free: use it for addresses that must
// be known before a process is started, and stay the same when it is started again.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// Process is a running or ended child. Its methods may be called from any goroutine.
type Process struct {
	Name    string
	LogFile string

	cmd   *exec.Cmd
	ended chan struct{}
	mu    sync.Mutex
	err   error // how it ended; valid once ended is closed
}

// Start starts a program with its output appended to <dir>/<name>.log. Extra files become descriptors 3, 4, …
func Start(dir, name, program string, extra []*os.File, args ...string) (*Process, error) {
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &Process{Name: name, LogFile: log.Name(), cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = log, log, extra
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C in the terminal is for the parent, which stops its children in order
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		err := p.cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(p.ended)
	}()
	return p, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err says how the process ended; nil while it runs and after exit status 0.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Killed says whether the process was ended by SIGKILL.
func (p *Process) Killed() bool {
	exit, ok := errors.AsType[*exec.ExitError](p.Err())
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Kill ends the process with SIGKILL and returns when it is gone.
func (p *Process) Kill() {
	p.cmd.Process.Kill() // fails only if it has ended
	<-p.ended
}

// Stop asks the process to stop with SIGTERM and waits for its end. A process that does not stop in time is killed;
// that, and any exit status but 0, is an error with the end of its log.
func (p *Process) Stop(within time.Duration) error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(within):
		p.Kill()
		return fmt.Errorf("%s did not stop within %v; the end of its log:\n%s", p.Name, within, p.Tail(15))
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("%s ended with %w; the end of its log:\n%s", p.Name, err, p.Tail(15))
	}
	return nil
}

// Tail is the end of the process' log.
func (p *Process) Tail(lines int) string {
	text, err := os.ReadFile(p.LogFile)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// AwaitLog waits until the log contains a text.
func (p *Process) AwaitLog(ctx context.Context, text string) error {
	return p.Await(ctx, fmt.Sprintf("%q in its log", text), func() (bool, error) {
		log, err := os.ReadFile(p.LogFile)
		return bytes.Contains(log, []byte(text)), err
	})
}

// awaitEvery is how often a condition of another process is looked at: there is nothing to wait on across processes.
const awaitEvery = 25 * time.Millisecond

// Await waits until a condition about the process holds; its end ends the wait with an error that has the end of
// its log.
func (p *Process) Await(ctx context.Context, what string, holds func() (bool, error)) error {
	tick := time.NewTicker(awaitEvery)
	defer tick.Stop()
	for {
		ok, err := holds()
		if ok {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended (%v) before %s; the end of its log:\n%s", p.Name, p.Err(), what, p.Tail(15))
		case <-ctx.Done():
			return fmt.Errorf("%s: no %s: %w (last: %v); the end of its log:\n%s", p.Name, what, context.Cause(ctx), err, p.Tail(15))
		case <-tick.C:
		}
	}
}
