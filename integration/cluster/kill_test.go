package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A devProcess is a "millrace dev" of its own process.
type devProcess struct {
	cmd  *exec.Cmd
	addr string
}

// buildDev compiles the command line tool.
func buildDev(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "millrace")
	build := exec.Command("go", "build", "-o", bin, "github.com/millrace-io/millrace/cmd/millrace")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build millrace: %v\n%s", err, out)
	}
	return bin
}

func startDev(t *testing.T, bin, listen, dir string) *devProcess {
	t.Helper()
	cmd := exec.Command(bin, "dev", "-listen", listen, "-data-dir", dir, "-topic", "plain:2", "-topic", "txn:2")
	cmd.Stderr = testWriter{t}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &devProcess{cmd: cmd}
	t.Cleanup(p.kill)
	p.addr, err = bufio.NewReader(out).ReadString('\n') // printed when it serves
	if err != nil {
		t.Fatalf("millrace dev ended before it served: %v", err)
	}
	p.addr = strings.TrimSpace(p.addr)
	go io.Copy(io.Discard, out) // ends with the process
	return p
}

// kill sends SIGKILL and waits until the process is gone.
func (p *devProcess) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Logf("dev: %s", strings.TrimRight(string(b), "\n"))
	return len(b), nil
}

// A ledger is what clients were told.
type ledger struct {
	mu        sync.Mutex
	plain     map[string]bool // acknowledged records
	committed map[int]bool    // transactions acknowledged as committed
	aborted   map[int]bool    // transactions acknowledged as aborted
	ends      chan struct{}   // a token for each transaction that was acknowledged
	beats     chan struct{}   // a beat of the plain producer, for who listens
}

func (l *ledger) note(set func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set()
}

// noteEnd is note for a transaction.
func (l *ledger) noteEnd(set func()) {
	l.note(set)
	l.ends <- struct{}{}
}

func (l *ledger) await(ctx context.Context, t *testing.T, token <-chan struct{}) {
	t.Helper()
	select {
	case <-token:
	case <-ctx.Done():
		t.Fatal("the clients did not go on after a restart")
	}
}

// TestKillUnderLoad kills "millrace dev" with SIGKILL while an idempotent producer writes and a transactional one ends
// transactions that hold a record in each partition and an offset. Every acknowledged record and transaction must be
// there afterwards, no transaction half, and the offset must be that of the last transaction.
func TestKillUnderLoad(t *testing.T) {
	kills := 6
	if testing.Short() {
		kills = 2
	}
	bin, dir := buildDev(t), t.TempDir()
	dev := startDev(t, bin, "127.0.0.1:0", dir)
	l := &ledger{plain: map[string]bool{}, committed: map[int]bool{}, aborted: map[int]bool{}, ends: make(chan struct{}, 1<<20), beats: make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	load, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { l.producePlain(load, dev.addr) })
	wg.Go(func() { l.runTransactions(load, t, dev.addr) })
	for i := range kills {
		// A different place in the clients' work each time: so many transactions, and some records of the other producer.
		for range 40 + 7*i {
			l.await(ctx, t, l.ends)
		}
		for range 13 * i {
			l.await(ctx, t, l.beats)
		}
		dev.kill()
		dev = startDev(t, bin, dev.addr, dir)
	}
	for range 20 {
		l.await(ctx, t, l.ends)
	}
	stop()
	wg.Wait()
	dev.kill()
	dev = startDev(t, bin, dev.addr, dir)
	l.check(ctx, t, dev.addr)
}

// producePlain writes records one after the other, ten at a time, and notes which are acknowledged.
func (l *ledger) producePlain(ctx context.Context, addr string) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic("plain"), kgo.MaxBufferedRecords(10), kgo.ProducerLinger(0))
	if err != nil {
		panic(err)
	}
	defer cl.Close()
	for i := 0; ctx.Err() == nil; i++ {
		value := fmt.Sprint(i)
		cl.Produce(ctx, kgo.StringRecord(value), func(_ *kgo.Record, err error) {
			if err == nil {
				l.note(func() { l.plain[value] = true })
				select {
				case l.beats <- struct{}{}:
				default:
				}
			}
		})
	}
}

// runTransactions ends one transaction after the other; a client that is fenced is replaced.
func (l *ledger) runTransactions(ctx context.Context, t *testing.T, addr string) {
	for i := 0; ctx.Err() == nil; {
		cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID("tx"), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.TransactionTimeout(10*time.Second), kgo.ProducerLinger(0))
		if err != nil {
			t.Error(err)
			return
		}
		p := &txnProducer{cl: cl, id: "tx", group: "g-tx"}
		for ; ctx.Err() == nil; i++ {
			if err := l.transaction(ctx, p, i); err != nil {
				i++
				break
			}
		}
		cl.Close()
	}
}

func (l *ledger) transaction(ctx context.Context, p *txnProducer, i int) error {
	if err := p.cl.BeginTransaction(); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	value := []byte(fmt.Sprint(i))
	err := p.cl.ProduceSync(bounded, &kgo.Record{Topic: "txn", Partition: 0, Value: value}, &kgo.Record{Topic: "txn", Partition: 1, Value: value}).FirstErr()
	if err != nil {
		return err
	}
	if err := p.offsetOf(bounded, "txn", int64(i)); err != nil {
		return err
	}
	if i%5 == 4 {
		if err := p.cl.EndTransaction(bounded, kgo.TryAbort); err != nil {
			return err
		}
		l.noteEnd(func() { l.aborted[i] = true })
		return nil
	}
	if err := p.cl.EndTransaction(bounded, kgo.TryCommit); err != nil {
		return err
	}
	l.noteEnd(func() { l.committed[i] = true })
	return nil
}

func (l *ledger) check(ctx context.Context, t *testing.T, addr string) {
	t.Helper()
	plain := readTopic(ctx, t, addr, "plain")
	found := map[string]bool{}
	for _, values := range plain {
		for _, v := range values {
			found[v] = true
		}
	}
	for v := range l.plain {
		if !found[v] {
			t.Errorf("acknowledged record %s is lost", v)
		}
	}
	txn := readTopic(ctx, t, addr, "txn")
	in := [2]map[int]bool{{}, {}}
	last := -1
	for p := range in {
		for _, v := range txn[int32(p)] {
			var i int
			fmt.Sscan(v, &i)
			if in[p][i] {
				t.Errorf("transaction %d is twice in partition %d", i, p)
			}
			in[p][i] = true
			last = max(last, i)
		}
	}
	for i := range last + 1 {
		switch {
		case in[0][i] != in[1][i]:
			t.Errorf("transaction %d is half there", i)
		case l.committed[i] && !in[0][i]:
			t.Errorf("transaction %d was acknowledged as committed and is lost", i)
		case l.aborted[i] && in[0][i]:
			t.Errorf("transaction %d was acknowledged as aborted and is there", i)
		}
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if got := fetched(t, kadm.NewClient(cl), "g-tx")["txn-0"]; got != int64(last) {
		t.Errorf("the committed offset is %d, and the last transaction in the log is %d", got, last)
	}
	t.Logf("%d records and %d commits acknowledged, %d aborts; last transaction %d", len(l.plain), len(l.committed), len(l.aborted), last)
}

// readTopic reads what a read_committed reader sees of a topic with two partitions, up to the records that it appends
// itself to know where the end is.
func readTopic(ctx context.Context, t *testing.T, addr, topic string) map[int32][]string {
	t.Helper()
	cl, err := kgo.NewClient(append(fromStart(topic), kgo.SeedBrokers(addr), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.FetchMaxWait(200*time.Millisecond))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for p := range int32(2) {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: p, Value: []byte("end")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	values := map[int32][]string{}
	for ends := 0; ends < 2; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Value) == "end" {
				ends++
				return
			}
			values[r.Partition] = append(values[r.Partition], string(r.Value))
		})
	}
	return values
}
