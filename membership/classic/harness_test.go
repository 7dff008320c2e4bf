package classic

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/membership/assign"
	"github.com/millrace-io/millrace/membership/codec"
)

const (
	partitions = 4
	// patience bounds every wait of these tests; nothing waits that long unless it hangs.
	patience = 30 * time.Second
)

// run makes names unique where a broker outlives the test, also when tests are repeated.
var run atomic.Int64

func init() { run.Store(time.Now().UnixMilli()) }

// A world is what the members of one test have in common and can change.
type world struct {
	t       *testing.T
	brokers []string
	group   string
	topic   string
	tasks   atomic.Pointer[[]assign.Task]
}

// newWorld runs an embedded cluster, or uses the broker at KAFKA_BOOTSTRAP, and makes the topic.
func newWorld(t *testing.T) *world {
	t.Helper()
	if addr := os.Getenv("KAFKA_BOOTSTRAP"); addr != "" {
		return worldAt(t, strings.Split(addr, ",")).withTopic()
	}
	c, err := cluster.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the cluster: %v", err)
		}
	})
	return worldAt(t, c.Brokers()).withTopic()
}

func worldAt(t *testing.T, brokers []string) *world {
	name := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	id := run.Add(1)
	w := &world{t: t, brokers: brokers, group: fmt.Sprintf("%s-%d", name, id), topic: fmt.Sprintf("lines-%s-%d", name, id)}
	w.setTasks(partitions)
	return w
}

func (w *world) withTopic() *world {
	w.t.Helper()
	if _, err := w.admin().CreateTopic(w.t.Context(), partitions, 1, nil, w.topic); err != nil {
		w.t.Fatal(err)
	}
	return w
}

func (w *world) setTasks(n int) {
	list := make([]assign.Task, n)
	for i := range list {
		list[i] = assign.Task{ID: task(i), Sources: []assign.TopicPartition{{Topic: w.topic, Partition: int32(i)}}, Stateful: true}
	}
	w.tasks.Store(&list)
}

func task(n int) taskid.ID { return taskid.ID{Subtopology: "counts", Partition: int32(n)} }

func (w *world) client(opts ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(w.brokers...)}, opts...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(client.Close)
	return client
}

func (w *world) admin() *kadm.Client { return kadm.NewClient(w.client()) }

// A peer is a driver with a thread that handles its events at once, and what it has been told.
type peer struct {
	*Driver
	w      *world
	name   string
	client *kgo.Client
	seen   chan membership.Event
	last   membership.Assigned // the latest that a test has taken from seen
}

// config is the configuration of a member of a process of its own.
func (w *world) config(name string, static bool) Config {
	cfg := Config{
		Group: w.group, ClientID: name, HeartbeatInterval: 20 * time.Millisecond, SessionTimeout: 10 * time.Second, RebalanceTimeout: 20 * time.Second,
		Topics: []string{w.topic},
		Subscription: func() codec.Subscription {
			return codec.Subscription{ProcessID: "process-" + name, ClientID: name, Endpoint: name + ":80", TopologyHash: 1}
		},
		Tasks: func() []assign.Task { return *w.tasks.Load() },
	}
	if static {
		cfg.InstanceID = membership.ConsumerClientID(name, 1)
	}
	return cfg
}

// join starts a member. Its events are recorded, and revoked tasks are released as soon as they are revoked.
func (w *world) join(cfg Config, opts ...kgo.Opt) *peer {
	w.t.Helper()
	cfg.Client = w.client(append([]kgo.Opt{kgo.ClientID(cfg.ClientID)}, opts...)...)
	d, err := Start(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	p := &peer{Driver: d, w: w, name: cfg.ClientID, client: cfg.Client, seen: make(chan membership.Event, 1000)}
	handled := make(chan struct{})
	go func() {
		defer close(handled)
		for e := range d.Events() {
			p.seen <- e
			if _, ok := e.(membership.Revoked); ok {
				d.RevokeDone()
			}
		}
	}()
	w.t.Cleanup(func() {
		if err := d.Close(context.Background(), Remain); err != nil {
			w.t.Errorf("close %s: %v", p.name, err)
		}
		<-handled
	})
	return p
}

// kill ends the member as a SIGKILL would: no leave, no good-bye.
func (p *peer) kill() {
	p.w.t.Helper()
	if err := p.Close(context.Background(), Remain); err != nil {
		p.w.t.Fatal(err)
	}
	p.client.Close()
}

// next returns the next event.
func (p *peer) next() membership.Event {
	p.w.t.Helper()
	select {
	case e := <-p.seen:
		return e
	case <-time.After(patience):
		p.w.t.Fatalf("%s: no event", p.name)
		return nil
	}
}

// assigned returns the next assignment, which must come before any other event but revocations.
func (p *peer) assigned() membership.Assigned {
	p.w.t.Helper()
	for {
		switch e := p.next().(type) {
		case membership.Assigned:
			p.last = e
			return e
		case membership.Revoked:
		default:
			p.w.t.Fatalf("%s: %v, want an assignment", p.name, e)
		}
	}
}

// assignedTasks waits for an assignment of n active tasks.
func (p *peer) assignedTasks(n int) membership.Assigned {
	p.w.t.Helper()
	for {
		if a := p.assigned(); len(a.Active) == n {
			return a
		}
	}
}

// settle waits until the group is stable and the last assignment of each peer has n tasks, all in one generation, and
// returns these assignments.
func (w *world) settle(n int, peers ...*peer) []membership.Assigned {
	w.t.Helper()
	last := make([]membership.Assigned, len(peers))
	for i, p := range peers {
		last[i] = p.last // it may be what the group settles on: then no other comes
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for i, p := range peers {
			select {
			case e := <-p.seen:
				if a, ok := e.(membership.Assigned); ok {
					last[i], p.last = a, a
				}
			case <-time.After(5 * time.Millisecond): // nothing new from this one: look at the whole again
			}
		}
		differs := func(a membership.Assigned) bool { return len(a.Active) != n || a.Generation != last[0].Generation }
		if !slices.ContainsFunc(last, differs) && w.described().State == "Stable" {
			return last
		}
	}
	w.t.Fatalf("the group does not settle: %v", last)
	return nil
}

// quiet fails if an event has come that nobody asked for.
func (p *peer) quiet() {
	p.w.t.Helper()
	select {
	case e := <-p.seen:
		p.w.t.Fatalf("%s: unexpected event: %v", p.name, e)
	default:
	}
}

// beatsOnce waits until a heartbeat of the member that was sent after the call has been answered: whatever the
// coordinator had to tell before has then been told.
func (p *peer) beatsOnce() {
	p.w.t.Helper()
	token, ok := p.Token()
	if !ok {
		p.w.t.Fatalf("%s has no token", p.name)
	}
	ctx, cancel := context.WithTimeout(p.w.t.Context(), patience)
	defer cancel()
	in, err := p.heartbeat(ctx, membership.SendHeartbeat{MemberID: token.MemberID, Generation: token.Generation})
	if err != nil || in.(membership.HeartbeatAnswered).Code != membership.None {
		p.w.t.Fatalf("%s: heartbeat: %v, %v", p.name, in, err)
	}
}

// described returns the group as the coordinator describes it.
func (w *world) described() kadm.DescribedGroup {
	w.t.Helper()
	groups, err := w.admin().DescribeGroups(w.t.Context(), w.group)
	if err != nil {
		w.t.Fatal(err)
	}
	return groups[w.group]
}

// instances lists the instance ids in the group, a dynamic member as "-".
func (w *world) instances() []string {
	w.t.Helper()
	var ids []string
	for _, m := range w.described().Members {
		id := "-"
		if m.InstanceID != nil {
			id = *m.InstanceID
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// remove takes an instance id out of the group, as an operator does.
func (w *world) remove(instanceID string) {
	w.t.Helper()
	if err := LeaveGroup(w.t.Context(), w.client(), w.group, "a test", Place{InstanceID: instanceID}); err != nil {
		w.t.Fatal(err)
	}
}

// union fails if two assignments share a task, and returns how many tasks they have.
func (w *world) union(list ...membership.Assigned) int {
	w.t.Helper()
	seen := map[taskid.ID]bool{}
	for _, a := range list {
		for _, id := range a.Active {
			if seen[id] {
				w.t.Fatalf("%v is assigned twice in %v", id, list)
			}
			seen[id] = true
		}
	}
	return len(seen)
}

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint("wc-", i))
	}
	return list
}
