package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestTenThousandConnectionsOfGarbage: whatever they send, the cluster serves a well-behaved client all the time, nothing
// is left of them afterwards, and a kill after all that loses nothing. GARBAGE=n makes it n connections, GARBAGE_SEED=n
// others.
func TestTenThousandConnectionsOfGarbage(t *testing.T) {
	connections := 10_000
	if testing.Short() {
		connections = 500
	}
	connections = int(fromEnv(t, "GARBAGE", uint64(connections)))
	seed := fromEnv(t, "GARBAGE_SEED", 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Duration(connections)*20*time.Millisecond)
	defer cancel()
	dir := t.TempDir()
	c, err := Start(DataDir(dir), Topic("lines", 1), Topic("words", 2), Topic("health", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { c.Close() }()
	cl := healthyClient(t, c)
	const workers = 32
	var wg sync.WaitGroup
	var answers, parked atomic.Int64
	for w := range workers {
		g := newGarbler(seed<<8|uint64(w), c.listener.router.(*front).versions.ranges, topicIDs(ctx, t, c), someProducers(ctx, t, cl))
		wg.Go(func() {
			for range connections / workers {
				n, open := throw(t, c, g.connection())
				answers.Add(n)
				parked.Add(open)
			}
		})
	}
	thrown := make(chan struct{})
	go func() { wg.Wait(); close(thrown) }()
	produced := 0
	for done := false; !done; produced++ {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "health", Value: fmt.Append(nil, produced)}).FirstErr(); err != nil {
			t.Fatalf("a well-behaved client: %v", err)
		}
		select {
		case <-thrown:
			done = true
		default:
		}
	}
	t.Logf("%d connections, seed %d: %d answers, %d connections refused, %d parked, %d records beside them",
		connections, seed, answers.Load(), c.Refused(), parked.Load(), produced)
	if answers.Load() < int64(connections) {
		t.Errorf("only %d answers from %d connections", answers.Load(), connections)
	}
	cl.Close()
	until(ctx, t, "all connections to be closed", func() bool { return c.listener.count() <= int(parked.Load()) })
	if parked.Load() > int64(connections/100) {
		t.Errorf("%d connections are still open", parked.Load())
	}
	if held := c.listener.trusted.held.Load() + c.listener.collected.held.Load(); held != 0 && parked.Load() == 0 {
		t.Errorf("%d bytes are still held", held)
	}
	if c.Refused() == 0 {
		t.Error("no connection was refused")
	}
	checkHealth(ctx, t, c, produced)
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	if c, err = Start(DataDir(dir)); err != nil {
		t.Fatalf("start after the garbage: %v", err)
	}
	checkHealth(ctx, t, c, produced)
}

func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func healthyClient(t *testing.T, c *Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(c.Brokers()...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// checkHealth reads, as a member of a group, what the well-behaved client wrote, and commits.
func checkHealth(ctx context.Context, t *testing.T, c *Cluster, records int) {
	t.Helper()
	cl := healthyClient(t, c, kgo.ConsumerGroup("health"), kgo.InstanceID("a"), kgo.ConsumeTopics("health"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	defer cl.Close()
	next := 0
	for next < records {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d records of %d: %v", next, records, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Value) != strconv.Itoa(next) {
				t.Fatalf("record %d is %q", next, r.Value)
			}
			next++
		})
	}
	if err := cl.CommitRecords(ctx, &kgo.Record{Topic: "health", Offset: -1}); err != nil { // the next check reads from 0 too
		t.Fatal(err)
	}
}

func topicIDs(ctx context.Context, t *testing.T, c *Cluster) [][16]byte {
	ids := [][16]byte{{}, {1, 2, 3}}
	meta, err := c.broker.metadata(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, topic := range existing(meta) {
		if name != "health" {
			ids = append(ids, topic.id)
		}
	}
	return ids
}

// someProducers have ids: of a transactional producer, and of one without.
func someProducers(ctx context.Context, t *testing.T, cl *kgo.Client) (all []producer) {
	for _, txnID := range []*string{nil, kmsg.StringPtr("tx0"), kmsg.StringPtr("tx1")} {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = txnID, 60_000
		resp, err := req.RequestWith(ctx, cl)
		if err != nil || resp.ErrorCode != 0 {
			t.Fatal(err, resp)
		}
		all = append(all, producer{id: resp.ProducerID, epoch: resp.ProducerEpoch})
	}
	return all
}

// throw sends bytes, says that no more will come, reads what comes back until the other side has closed, and counts the
// answers. A request that parks, with another behind it, keeps its connection until it is answered, as in Kafka: frames
// that were broken may say that it parks for minutes.
func throw(t *testing.T, c *Cluster, raw []byte) (answers, parked int64) {
	nc, err := net.Dial("tcp", c.Brokers()[0])
	if err != nil {
		t.Error(err)
		return 0, 0
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Error(err)
		return 0, 0
	}
	go func() {
		nc.Write(raw) // fails when the other side has closed already
		nc.(*net.TCPConn).CloseWrite()
	}()
	for r := bufio.NewReader(nc); ; answers++ {
		var size [4]byte
		_, err := io.ReadFull(r, size[:])
		if err == nil {
			_, err = r.Discard(int(binary.BigEndian.Uint32(size[:])))
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if !parks(raw) {
				t.Errorf("the connection is still open after % x", raw)
			}
			return answers, 1
		}
		if err != nil {
			return answers, 0
		}
	}
}

// parks reports whether there is a request among the frames that may wait for something.
func parks(raw []byte) bool {
	found := false
	_ = readAll(bytes.NewReader(raw), func(fr frame, _ []byte) {
		found = found || fr.key == keyFetch || fr.key == keyJoinGroup || fr.key == keySyncGroup
	})
	return found
}

// count is how many clients are connected.
func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.guards)
}

// TestBytesHeldAreBounded: clients that send large frames in part and stop hold no more than the limit together; who
// would take more is cut off, and whoever comes with small frames is served.
func TestBytesHeldAreBounded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Start(Topic("lines", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := c.listener
	const limit = 4 << 20
	l.trusted.limit, l.collected.limit = limit, limit // nobody is connected yet
	half := func(announced, sent int) net.Conn {
		nc, err := net.Dial("tcp", c.Brokers()[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		raw := binary.BigEndian.AppendUint32(nil, uint32(announced))
		raw = append(raw, encode(kmsg.NewPtrMetadataRequest(), 1)[4:]...)
		raw = append(raw, make([]byte, max(0, sent-len(raw)))...)
		if _, err := nc.Write(raw[:sent]); err != nil && sent < trustedFrame {
			t.Fatal(err)
		}
		return nc
	}
	var liars []net.Conn
	for range 10 { // kfake would reserve what they announce
		liars = append(liars, half(trustedFrame, 20))
	}
	for range 10 {
		liars = append(liars, half(10<<20, 1<<20))
	}
	until(ctx, t, "some of them to be refused", func() bool { return c.Refused() > 0 })
	if trusted, collected := l.trusted.held.Load(), l.collected.held.Load(); trusted > limit || collected > limit {
		t.Errorf("%d and %d bytes are held, the limit is %d", trusted, collected, limit)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "lines", Value: []byte("v")}).FirstErr(); err != nil {
		t.Errorf("a well-behaved client: %v", err)
	}
	for _, nc := range liars {
		nc.Close()
	}
	cl.Close()
	until(ctx, t, "everything to be given back", func() bool {
		return l.count() == 0 && l.trusted.held.Load() == 0 && l.collected.held.Load() == 0
	})
}

// TestSlowAndHalfOpenConnections: who sends a byte now and then, and who sends half a frame and nothing more, disturbs
// nobody; the slow one gets its answer in the end.
func TestSlowAndHalfOpenConnections(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Start(Topic("lines", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	metadata := encode(kmsg.NewPtrMetadataRequest(), 5)
	const many = 50
	var slow, open []net.Conn
	for i := range 2 * many {
		nc, err := net.Dial("tcp", c.Brokers()[0])
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if i%2 == 0 {
			slow = append(slow, nc)
			continue
		}
		open = append(open, nc)
		if _, err := nc.Write(metadata[:1+i/2%(len(metadata)-1)]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range metadata {
		for _, nc := range slow {
			if _, err := nc.Write(metadata[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "lines", Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatalf("a well-behaved client, %d bytes in: %v", i, err)
		}
	}
	for _, nc := range slow {
		var answer [8]byte
		if err := nc.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(nc, answer[:]); err != nil || binary.BigEndian.Uint32(answer[4:]) != 5 {
			t.Fatalf("a slow client's answer: % x, %v", answer, err)
		}
	}
	for _, nc := range append(slow, open...) {
		nc.Close()
	}
	until(ctx, t, "only the client to be left", func() bool { return c.listener.count() <= 3 })
}

// TestTooManyConnections: one too many is closed and counted, and there is room again when another has gone.
func TestTooManyConnections(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.listener.mu.Lock()
	c.listener.connections = 2
	c.listener.mu.Unlock()
	dial := func() net.Conn {
		nc, err := net.Dial("tcp", c.Brokers()[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return nc
	}
	first := dial()
	dial()
	until(ctx, t, "both to be let in", func() bool { return c.listener.count() == 2 })
	third := dial()
	if err := third.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := third.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the third connection: %v", err)
	}
	if c.Refused() != 1 {
		t.Errorf("%d connections refused", c.Refused())
	}
	first.Close()
	until(ctx, t, "one to have gone", func() bool { return c.listener.count() == 1 })
	dial()
	until(ctx, t, "another to be let in", func() bool { return c.listener.count() == 2 })
}
