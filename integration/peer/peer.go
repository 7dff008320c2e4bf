// Package peer runs Kafka Streams, the peer of the benchmarks: Peer.java, one file on the published jars of
// Kafka Streams, with workloads, flags and JSON lines that the Go program in integration/bench has too.
//
// Not relied upon: a build tool for the peer. The JDK's compiler compiles the one file when it has changed.
package peer

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/millrace-io/millrace/integration/kafka"
)

//go:embed Peer.java
var source []byte

// HeapFlags are the JVM flags of a run unless others are given: a fixed heap of 1 GiB under G1, as a service
// would have it.
var HeapFlags = []string{"-Xms1g", "-Xmx1g", "-XX:+UseG1GC"}

// Peer is a compiled peer, ready to run.
type Peer struct {
	java, classpath, logging string
}

// Compile resolves the jars and compiles the peer into the run directory, unless that was done before.
func Compile(ctx context.Context, dir string) (*Peer, error) {
	java, err := kafka.Java()
	if err != nil {
		return nil, err
	}
	jars, err := kafka.Classpath(ctx, dir)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append(append([]byte(nil), source...), jars...))
	classes := filepath.Join(dir, "peer-"+hex.EncodeToString(sum[:6]))
	logging, err := kafka.LoggingFlag(dir) // to stderr: stdout has the JSON lines and nothing else
	if err != nil {
		return nil, err
	}
	p := &Peer{java: java, classpath: classes + string(filepath.ListSeparator) + jars, logging: logging}
	if _, err := os.Stat(classes); err == nil {
		return p, nil
	}
	return p, compile(ctx, dir, classes, jars)
}

// compile fills a directory of its own, which takes its name when it is complete.
func compile(ctx context.Context, dir, classes, jars string) error {
	javac, err := kafka.Javac()
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(dir, "peer-")
	if err != nil {
		return fmt.Errorf("peer: %w", err)
	}
	defer os.RemoveAll(tmp)
	file := filepath.Join(tmp, "Peer.java")
	if err := os.WriteFile(file, source, 0o644); err != nil {
		return fmt.Errorf("peer: %w", err)
	}
	if text, err := exec.CommandContext(ctx, javac, "-Xlint:all", "-d", tmp, "-cp", jars, file).CombinedOutput(); err != nil {
		return fmt.Errorf("peer: compile Peer.java: %w\n%s", err, text)
	}
	if err := os.Rename(tmp, classes); err != nil {
		if _, exists := os.Stat(classes); exists == nil {
			return nil // compiled by somebody else in the meantime
		}
		return fmt.Errorf("peer: %w", err)
	}
	return nil
}

// Command prepares a run of a workload. A prefix such as taskset -c 0 pins it; flags are the JVM's, HeapFlags
// if nil.
func (p *Peer) Command(ctx context.Context, prefix, flags []string, args ...string) *exec.Cmd {
	if flags == nil {
		flags = HeapFlags
	}
	line := append(append([]string(nil), prefix...), p.java)
	line = append(append(line, flags...), p.logging, "-cp", p.classpath, "Peer")
	line = append(line, args...)
	return exec.CommandContext(ctx, line[0], line[1:]...)
}
