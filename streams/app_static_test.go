package streams_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
)

// wire counts the requests that the clients of an application send.
type wire struct{ sent [200]atomic.Int64 }

// OnBrokerWrite implements [kgo.HookBrokerWrite].
func (w *wire) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	w.sent[key].Add(1)
}

func (w *wire) leaveGroups() int64 { return w.sent[kmsg.LeaveGroup.Int16()].Load() }

// watched makes the application count its requests.
func watched(cfg *streams.Config) *wire {
	w := new(wire)
	cfg.KafkaOptions = append(cfg.KafkaOptions, kgo.WithHooks(w))
	return w
}

// settled waits until the threads of all applications run so many tasks together in one generation, and returns it.
func (f *fixture) settled(tasks int, apps ...*running) (generation int32) {
	f.Helper()
	f.eventually("a settled group", func() bool {
		generation = -1
		n := 0
		for _, app := range apps {
			select {
			case err := <-app.done:
				f.Fatalf("the application ended: %v", err)
			default:
			}
			if app.State() != streams.Running {
				return false
			}
			for _, s := range app.Threads() {
				if s.State != "RUNNING" || generation >= 0 && s.Generation != generation {
					return false
				}
				generation = s.Generation
				n += len(s.Active)
			}
		}
		return n == tasks
	})
	return generation
}

// reached tells whether all threads are in the generation or a later one.
func (r *running) reached(generation int32) bool {
	all := r.Threads()
	for _, s := range all {
		if s.Generation < generation {
			return false
		}
	}
	return len(all) > 0
}

// instances lists the instance ids that the coordinator has.
func (f *fixture) instances() []string {
	f.Helper()
	groups, err := f.admin().DescribeGroups(f.Context(), f.app)
	if err != nil {
		f.Fatal(err)
	}
	var ids []string
	for _, m := range groups[f.app].Members {
		if m.InstanceID == nil {
			f.Errorf("member %s is dynamic", m.MemberID)
			continue
		}
		ids = append(ids, strings.TrimSuffix(*m.InstanceID, "-consumer"))
	}
	slices.Sort(ids)
	return ids
}

func (f *fixture) wantInstances(want ...string) {
	f.Helper()
	if got := f.instances(); !slices.Equal(got, want) {
		f.Errorf("the group has %v, want %v", got, want)
	}
}

// S130: a static member that closes says nothing to the group, which keeps its place. S133: each thread is an instance by the
// number of its place, from 1.
func TestStaticCloseKeepsThePlaces(t *testing.T) {
	f := newFixture(t)
	cfg := f.config("wc-0")
	cfg.Threads = 3
	w := watched(&cfg)
	b, _ := f.wordCount()
	app := f.start(b, cfg)
	f.settled(8, app)
	app.end()
	if n := w.leaveGroups(); n != 0 {
		t.Errorf("%d LeaveGroup requests were sent, want none", n)
	}
	f.wantInstances("wc-0-StreamThread-1", "wc-0-StreamThread-2", "wc-0-StreamThread-3")
}

// S136: with Leave all threads of a process leave in one batch, and the others get their tasks in one rebalance.
func TestCloseLeavesInOneBatch(t *testing.T) {
	for _, membership := range []streams.Membership{streams.Static, streams.Dynamic} {
		t.Run(map[streams.Membership]string{streams.Static: "static", streams.Dynamic: "dynamic"}[membership], func(t *testing.T) {
			f := newFixture(t)
			start := func(name string, threads int) (*running, *wire) {
				cfg := f.config(name)
				cfg.Threads, cfg.Membership = threads, membership
				w := watched(&cfg)
				b, _ := f.wordCount()
				return f.start(b, cfg), w
			}
			stays, _ := start("wc-0", 1)
			goes, w := start("wc-1", 3)
			before := f.settled(8, stays, goes)
			if err := goes.Close(t.Context(), streams.Leave); err != nil {
				t.Fatal(err)
			}
			if err := goes.wait(); err != nil {
				t.Fatal(err)
			}
			if n := w.leaveGroups(); n != 1 {
				t.Errorf("%d LeaveGroup requests were sent, want 1", n)
			}
			if after := f.settled(8, stays); after != before+1 {
				t.Errorf("generation %d after %d, want one step", after, before)
			}
			stays.end()
		})
	}
}

// Remain is for dynamic members what is the default for static ones.
func TestDynamicMembersRemain(t *testing.T) {
	f := newFixture(t)
	cfg := f.config("")
	cfg.CloseMode = streams.Remain
	w := watched(&cfg)
	b, _ := f.wordCount()
	app := f.start(b, cfg)
	f.settled(8, app)
	app.end()
	if n := w.leaveGroups(); n != 0 {
		t.Errorf("%d LeaveGroup requests were sent, want none", n)
	}
}

// An application that fails keeps the places of its static members even if it leaves otherwise: it is started again.
func TestFailureNeverLeaves(t *testing.T) {
	f := newFixture(t)
	b := streams.NewBuilder()
	b.Stream(f.lines, serde.Bytes, serde.String).MapValues(func(s string) string { panic("no grist") }).To(f.counts, serde.Bytes, serde.String)
	cfg := f.config("wc-0")
	cfg.CloseMode = streams.Leave
	w := watched(&cfg)
	app := f.start(b, cfg)
	f.settled(4, app)
	f.produce("stone")
	as(t, app.wait(), streams.KindProcess)
	if n := w.leaveGroups(); n != 0 {
		t.Errorf("%d LeaveGroup requests were sent, want none", n)
	}
	f.wantInstances("wc-0-StreamThread-1", "wc-0-StreamThread-2")
}

// S137: a broker that speaks no version of a request that carries an instance id is an error at the start, never a dynamic member.
func TestBrokerWithoutStaticMembers(t *testing.T) {
	for _, old := range []struct {
		key       kmsg.Key
		need, max int16 // max -1: the broker does not know the request
	}{
		{kmsg.JoinGroup, 5, 4}, {kmsg.SyncGroup, 3, 2}, {kmsg.Heartbeat, 3, 2}, {kmsg.LeaveGroup, 3, 2}, {kmsg.OffsetCommit, 7, 6},
		{kmsg.TxnOffsetCommit, 3, 2}, {kmsg.JoinGroup, 5, -1},
	} {
		t.Run(fmt.Sprint(old.key.Name(), old.max), func(t *testing.T) {
			f := newFixture(t)
			b := streams.NewBuilder()
			b.Stream(f.lines, serde.Bytes, serde.String).To(f.counts, serde.Bytes, serde.String)
			cfg := f.config("wc-0")
			w := watched(&cfg)
			age := func(resp kmsg.Response) {
				r := resp.(*kmsg.ApiVersionsResponse)
				at := slices.IndexFunc(r.ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool { return k.ApiKey == old.key.Int16() })
				if r.ApiKeys[at].MaxVersion = old.max; old.max < 0 {
					r.ApiKeys = slices.Delete(r.ApiKeys, at, at+1)
				}
			}
			cfg.KafkaOptions = append(cfg.KafkaOptions, forger{kmsg.ApiVersions: age}.option())
			e := as(t, f.start(b, cfg).wait(), streams.KindBroker)
			u, ok := errors.AsType[*membership.UnsupportedError](e)
			if !ok || string(u.Request) != old.key.Name() || u.Need != int(old.need) || u.Max != int(old.max) {
				t.Errorf("the error is %v", e)
			}
			if n := w.sent[kmsg.JoinGroup.Int16()].Load(); n != 0 {
				t.Errorf("%d JoinGroup requests were sent, want none", n)
			}
			f.wantInstances()
		})
	}
}

// S138: what the group knows of a process goes stale when it comes back elsewhere, or with another topology: that forces one
// rebalance. A process that comes back as it was forces none.
func TestChangedProcessForcesOneRebalance(t *testing.T) {
	f := newFixture(t)
	moreTopic := f.app + "-more"
	f.create(partitions, moreTopic)
	start := func(name, endpoint string, dir string, more bool) *running {
		b, _ := f.wordCount()
		if more {
			b.Stream(moreTopic, serde.Bytes, serde.String).To(f.counts, serde.Bytes, serde.String)
		}
		cfg := f.config(name)
		cfg.AdvertisedEndpoint, cfg.StateDir = endpoint, dir
		return f.start(b, cfg)
	}
	dirs := []string{t.TempDir(), t.TempDir()}
	other := start("wc-0", "host-0:80", dirs[0], false)
	app := start("wc-1", "host-1:80", dirs[1], false)
	generation := f.settled(8, other, app)

	app.end()
	app = start("wc-1", "elsewhere:80", dirs[1], false)
	f.eventually("the forced rebalance", func() bool { return other.reached(generation + 1) })
	if after := f.settled(8, other, app); after != generation+1 {
		t.Errorf("another endpoint: generation %d after %d, want one step", after, generation)
	}
	f.eventually("the new endpoint in the metadata", func() bool {
		s, err := other.Metadata(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var hosts []string
		for _, in := range s.Instances {
			hosts = append(hosts, in.Host)
		}
		return slices.Equal(hosts, []string{"host-0:80", "elsewhere:80"})
	})

	app.end()
	app = start("wc-1", "elsewhere:80", dirs[1], false)
	if after := f.settled(8, other, app); after != generation+1 {
		t.Errorf("the same again: generation %d after %d, want no step", after, generation+1)
	}

	// A rolling upgrade: the topology has a sub-topology more. Each process forces one rebalance as it comes back.
	for i, process := range []**running{&app, &other} {
		(*process).end()
		*process = start([]string{"wc-1", "wc-0"}[i], []string{"elsewhere:80", "host-0:80"}[i], dirs[1-i], true)
		f.eventually("the forced rebalance", func() bool { return app.reached(generation+2+int32(i)) && other.reached(generation+2+int32(i)) })
	}
	// If the first one leads the group it has all the new tasks, until the second one can take some of them off it.
	if after := f.settled(12, other, app); after > generation+4 {
		t.Errorf("the upgrade of two processes took generations %d to %d", generation+1, after)
	}
	f.produceRecord(&kgo.Record{Topic: moreTopic, Key: []byte("more"), Value: []byte{0, 0, 0, 0, 0, 0, 0, 7}})
	f.countsUntil(map[string]int64{"more": 7})
	app.end()
	other.end()
}
