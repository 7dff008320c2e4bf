//go:build unix

package coordinator

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The benchmarks report cpu-ns/op, which unlike ns/op says something on a machine that has other things to do.

// measure runs the measured part, which must be a loop over b.Loop.
func measure(b *testing.B, run func()) {
	b.Helper()
	before := cpuTime(b)
	run()
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func cpuTime(b *testing.B) int64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// benchGroup is a machine with a Stable group of n static members, without the script world around it.
func benchGroup(b testing.TB, n int) (*Machine, time.Time, []string) {
	b.Helper()
	next := 0
	m := New(Config{OffsetsPartitions: 1, InitialRebalanceDelay: time.Second, NewID: func(string) string { next++; return fmt.Sprint(next) }})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m.Step(now, Loaded{})
	acknowledge(m, now, joinAll(m, now, n))
	for range 2 { // the second round of the initial rebalance is for those who came in the first
		now = now.Add(time.Second)
		m.Step(now, Tick{})
	}
	g, _ := m.Group("g")
	ids := memberIDs(g)
	for i, id := range ids {
		sync := kmsg.NewPtrSyncGroupRequest()
		sync.Version, sync.Group, sync.Generation, sync.MemberID = 4, "g", 1, id
		for _, other := range ids {
			if i == 0 {
				e := kmsg.NewSyncGroupRequestGroupAssignment()
				e.MemberID, e.MemberAssignment = other, []byte("assignment")
				sync.GroupAssignment = append(sync.GroupAssignment, e)
			}
		}
		acknowledge(m, now, m.Step(now, Request{ID: uint64(n + i), Req: sync}))
	}
	if g, _ := m.Group("g"); g.State != "Stable" || len(g.Members) != n {
		b.Fatalf("the group is %s with %d members", g.State, len(g.Members))
	}
	return m, now, ids
}

// joinAll lets n static members join, and returns the appends of that.
func joinAll(m *Machine, now time.Time, n int) []Action {
	var appends []Action
	for i := range n {
		instance := fmt.Sprintf("instance-%d", i)
		q := kmsg.NewPtrJoinGroupRequest()
		q.Version, q.Group, q.InstanceID, q.ProtocolType = 9, "g", &instance, "consumer"
		q.SessionTimeoutMillis, q.RebalanceTimeoutMillis = 600_000, 600_000
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = "millrace", []byte("metadata")
		q.Protocols = append(q.Protocols, p)
		for _, a := range m.Step(now, Request{ID: uint64(i), ClientID: instance, Host: "/127.0.0.1", Req: q}) {
			if _, ok := a.(*Append); ok {
				appends = append(appends, a)
			}
		}
	}
	return appends
}

func acknowledge(m *Machine, now time.Time, actions []Action) {
	var ids []uint64
	for _, a := range actions {
		if a, ok := a.(*Append); ok {
			ids = append(ids, a.ID)
		}
	}
	for _, id := range ids {
		acknowledge(m, now, m.Step(now, Appended{ID: id}))
	}
}

func heartbeatEvent(id string) Event {
	q := kmsg.NewPtrHeartbeatRequest()
	q.Version, q.Group, q.Generation, q.MemberID = 4, "g", 1, id
	return Request{ID: 1, Req: q}
}

// BenchmarkHeartbeat is the step that a coordinator makes most, with the deadline that its owner asks for afterwards.
func BenchmarkHeartbeat(b *testing.B) {
	m, now, ids := benchGroup(b, 100)
	events := make([]Event, len(ids))
	for i, id := range ids {
		events[i] = heartbeatEvent(id)
	}
	b.ReportAllocs()
	measure(b, func() {
		for i := 0; b.Loop(); i++ {
			now = now.Add(time.Millisecond)
			m.Step(now, events[i%len(events)])
			m.NextDeadline()
		}
	})
}

func TestHeartbeatDoesNotAllocate(t *testing.T) {
	m, now, ids := benchGroup(t, 10)
	event := heartbeatEvent(ids[3])
	allocs := testing.AllocsPerRun(1000, func() {
		now = now.Add(time.Millisecond)
		m.Step(now, event)
		m.NextDeadline()
	})
	if allocs != 0 {
		t.Errorf("a heartbeat allocates %v times", allocs)
	}
}

// BenchmarkJoin1000 is the first rebalance of a group with 1,000 static members, from the first join to the answers.
func BenchmarkJoin1000(b *testing.B) {
	measure(b, func() {
		for b.Loop() {
			benchGroup(b, 1000)
		}
	})
}

// BenchmarkLoad is a restart: 1,000 groups of 100 members each.
func BenchmarkLoad(b *testing.B) {
	m, _, _ := benchGroup(b, 100)
	value := m.groups["g"].image.AppendTo(nil)
	var records []LogRecord
	for i := range 1000 {
		records = append(records, LogRecord{Record: Record{groupKey(fmt.Sprintf("group-%d", i)), value}})
	}
	measure(b, func() {
		for b.Loop() {
			m := New(Config{OffsetsPartitions: 1, NewID: func(string) string { return "" }})
			m.Step(time.Unix(0, 0), Loaded{Records: records})
			if len(m.groups) != 1000 {
				b.Fatalf("%d groups were loaded", len(m.groups))
			}
		}
	})
}
