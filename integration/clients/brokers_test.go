package clients

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-io/millrace/integration/kafka"
	"github.com/millrace-io/millrace/integration/proc"
)

// A broker is what the clients are run against: the same cases, each client with a fresh one of its own.
type broker struct {
	name  string
	title string                                               // in docs/clients.md
	start func(t *testing.T, millrace, client string) endpoint // millrace is the program, client a name for files
}

// An endpoint is one running broker.
type endpoint struct {
	addr  string
	admin string // URL of the HTTP admin side of "millrace dev"; "" where there is none

	// finish stops it in order and returns what it had to complain about.
	finish func() (complaints []string)
}

// The two profiles of "millrace dev", and what it is measured by.
var brokers = []broker{
	{"kafka", "`millrace dev`", dev("kafka")},
	{"kip345", "`millrace dev -profile kip345`", dev("kip345")},
	{"apache", "Apache Kafka 4.4", apache},
}

// ours are the brokers that have what only "millrace dev" has.
var ours = []string{"kafka", "kip345"}

// wanted are the brokers that a run is asked to use, by the names in runEnv.
func wanted(t *testing.T) (list []broker) {
	t.Helper()
	for _, name := range strings.FieldsFunc(os.Getenv(runEnv), func(r rune) bool { return r == ',' || r == ' ' }) {
		i := slices.IndexFunc(brokers, func(b broker) bool { return b.name == name })
		if i < 0 {
			t.Fatalf("%s names the broker %q; there are kafka, kip345 (millrace dev with that profile) and apache (Apache Kafka)", runEnv, name)
		}
		list = append(list, brokers[i])
	}
	return list
}

// dev starts "millrace dev" with a profile, on free ports.
func dev(profile string) func(t *testing.T, millrace, client string) endpoint {
	return func(t *testing.T, millrace, _ string) endpoint {
		t.Helper()
		addr, err := proc.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		admin, err := proc.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		p, err := proc.Start(t.TempDir(), "dev", millrace, nil, "dev", "-listen", addr, "-admin", admin, "-profile", profile)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.AwaitLog(ctx, "http://"+admin); err != nil {
			t.Fatal(err)
		}
		return endpoint{addr: addr, admin: "http://" + admin, finish: func() []string {
			if err := p.Stop(30 * time.Second); err != nil {
				t.Error(err)
			}
			return complaints(t, p.LogFile)
		}}
	}
}

// apache starts a real broker. Its warnings are its own affair.
func apache(t *testing.T, _, client string) endpoint {
	t.Helper()
	b, err := kafka.Start(t.Context(), kafka.Config{Name: "clients-" + client, Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Kill() })
	return endpoint{addr: b.Addr(), finish: func() []string {
		if err := b.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		return nil
	}}
}

// slowMachine is in kfake's warning about a transaction that took 10 ms to end.
const slowMachine = "EndTxn slow"

// complaints are the warnings and errors that the cluster has logged.
func complaints(t *testing.T, log string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		warned := strings.Contains(line, "level=WARN") && !strings.Contains(line, slowMachine)
		if warned || strings.Contains(line, "level=ERROR") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}
