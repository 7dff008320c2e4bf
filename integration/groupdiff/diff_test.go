package groupdiff

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// steps is the length of a random sequence.
const steps = 50

// bench is the two clusters.
type bench struct {
	addrs  [2]string
	topics [2]map[[16]byte]string
	parts  [2]int32
	run    string // makes the names of groups differ from those of other runs
	groups int

	patience  time.Duration
	overtaken int // sequences that differed in a hurry only
}

func newBench(t *testing.T, opts ...cluster.Option) *bench {
	t.Helper()
	bootstrap := os.Getenv("KAFKA_BOOTSTRAP")
	if bootstrap == "" {
		t.Skip("KAFKA_BOOTSTRAP is not set: the coordinators are compared in make test-kafka only")
	}
	c, err := cluster.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{patience: patience, addrs: [2]string{strings.Split(bootstrap, ",")[0], c.Brokers()[0]}, run: strings.ToLower(rand.Text()[:8])}
	for s, addr := range b.addrs {
		b.topics[s], b.parts[s] = prepare(t, addr)
	}
	return b
}

// prepare creates the topic that offsets are committed for, and lets the broker create its own.
func prepare(t *testing.T, addr string) (ids map[[16]byte]string, partitions int32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	if _, err := adm.CreateTopic(ctx, 2, 1, nil, topicName); err != nil && !strings.Contains(err.Error(), kerr.TopicAlreadyExists.Message) {
		t.Fatalf("%s: %v", addr, err)
	}
	side := newSide(addr, addr)
	for kind := range int8(2) { // groups, transactions
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorKey, find.CoordinatorType = 3, "groupdiff", kind
		if _, err := retry(ctx, side, find, func(r kmsg.Response) int16 { return r.(*kmsg.FindCoordinatorResponse).ErrorCode }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 50 { // every partition has been loaded
		heartbeat := kmsg.NewPtrHeartbeatRequest()
		heartbeat.Version, heartbeat.Group = 4, fmt.Sprintf("groupdiff-%d", i)
		loading := func(r kmsg.Response) int16 {
			if code := r.(*kmsg.HeartbeatResponse).ErrorCode; code != kerr.UnknownMemberID.Code {
				return code
			}
			return 0
		}
		if _, err := retry(ctx, side, heartbeat, loading); err != nil {
			t.Fatal(err)
		}
	}
	topics, err := adm.ListTopicsWithInternal(ctx, topicName, "__consumer_offsets")
	if err != nil || topics.Error() != nil {
		t.Fatalf("%s: %v, %v", addr, err, topics.Error())
	}
	return map[[16]byte]string{topics[topicName].ID: topicName}, int32(len(topics["__consumer_offsets"].Partitions))
}

// play sends a sequence to a group that nobody has used.
func (b *bench) play(t *testing.T, settle time.Duration, next func(*pair) (request, bool)) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	b.groups++
	p := &pair{
		group:  fmt.Sprintf("groupdiff-%s-%d", b.run, b.groups),
		settle: settle,
		waits:  b.patience,
		sides:  [2]*side{newSide("kafka", b.addrs[0]), newSide("ours", b.addrs[1])},
		names:  [2]*names{newNames(), newNames()},
		parts:  b.parts,
		seen:   map[int]bool{}, lists: map[string]bool{},
	}
	for s := range p.names {
		p.names[s].topics = b.topics[s]
	}
	o, err := p.play(ctx, next)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// settle is how long a sequence that differed waits after each of its requests when it is played again.
const settle = 50 * time.Millisecond

// compare plays a sequence; a difference counts when it comes again in one of three slow repetitions.
func (b *bench) compare(t *testing.T, name string, next func() func(*pair) (request, bool)) outcome {
	t.Helper()
	o := b.play(t, 0, next())
	if o.unknown == "" {
		return o
	}
	first := o
	for range 3 {
		if o = b.play(t, settle, next()); o.unknown != "" {
			t.Errorf("%s: the answers differ\n%s\n%s", name, o.unknown, strings.Join(o.trace, "\n"))
			return o
		}
	}
	b.overtaken++
	t.Logf("%s: differs in a hurry, and not with %v after each request, so one overtook another: %s\n%s", name, settle, first.unknown, strings.Join(first.trace, "\n"))
	return o
}

func TestSequencesByHand(t *testing.T) {
	b := newBench(t)
	for _, h := range byHand {
		t.Run(strings.ReplaceAll(h.name, " ", "-"), func(t *testing.T) {
			list, err := parseHand(h.text)
			if err != nil {
				t.Fatal(err)
			}
			o := b.compare(t, h.name, func() func(*pair) (request, bool) { return replay(list) })
			if o.unknown == "" && o.steps != len(list) {
				t.Errorf("ended after %d of %d requests: %s\n%s", o.steps, len(list), o.known, strings.Join(o.trace, "\n"))
			}
		})
	}
}

func TestRandomSequences(t *testing.T) {
	b := newBench(t)
	if seed := number(t, "GROUPDIFF_SEED", 0); seed != 0 {
		o := b.compare(t, fmt.Sprintf("seed %d", seed), func() func(*pair) (request, bool) { return walk(seed, steps) })
		t.Logf("%d requests, %s\n%s", o.steps, o.known, strings.Join(o.trace, "\n"))
		return
	}
	ended, total, unexplained := map[string]int{}, 0, 0
	from := number(t, "GROUPDIFF_FROM", 1)
	n := number(t, "GROUPDIFF_N", 100)
	for seed := from; seed < from+n && unexplained < 10; seed++ {
		o := b.compare(t, fmt.Sprintf("seed %d", seed), func() func(*pair) (request, bool) { return walk(seed, steps) })
		total += o.steps
		if o.unknown != "" {
			unexplained++
		} else if o.known != "" {
			ended[o.known]++
		}
	}
	t.Logf("%d sequences, %d requests compared, %d unexplained differences, %d played again slowly", n, total, unexplained, b.overtaken)
	if b.overtaken > 1+int(n)/200 {
		t.Errorf("%d of %d sequences differ in a hurry only, which is too many for chance", b.overtaken, n)
	}
	for name, times := range ended {
		t.Logf("%d sequences ended with: %s", times, name)
	}
}

// The other profile does differ from Kafka, or nothing here would prove anything.
func TestOtherProfileDiffers(t *testing.T) {
	b := newBench(t, cluster.Profile(coordinator.KIP345))
	b.patience = time.Second // what one side does not answer is what is to be seen
	for _, name := range []string{"a handed out id leaves a Stable group", "a parked request is repeated"} {
		for _, h := range byHand {
			if h.name != name {
				continue
			}
			list, err := parseHand(h.text)
			if err != nil {
				t.Fatal(err)
			}
			if o := b.play(t, 0, replay(list)); o.unknown == "" {
				t.Errorf("%s: no difference is seen\n%s", name, strings.Join(o.trace, "\n"))
			}
		}
	}
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q is not a number", name, s)
	}
	return n
}

// The sequences by hand can be read without a broker.
func TestSequencesByHandParse(t *testing.T) {
	for _, h := range byHand {
		list, err := parseHand(h.text)
		if err != nil || len(list) == 0 {
			t.Errorf("%s: %v, %d requests", h.name, err, len(list))
		}
		for _, r := range list {
			if r.kind != "end-txn" {
				r.build("g", newNames()) // panics for a kind that does not exist
			}
		}
	}
}
