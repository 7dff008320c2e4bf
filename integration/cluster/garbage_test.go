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
