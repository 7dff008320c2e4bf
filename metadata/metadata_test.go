package metadata

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-io/millrace/internal/taskid"
)

func tasks(names ...string) []taskid.ID {
	var ids []taskid.ID
	for _, name := range names {
		id, err := taskid.Parse(name)
		if err != nil {
			panic(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func TestWithLocalMarksTheProcessAndKeepsTheReceiver(t *testing.T) {
	before := Snapshot{Generation: UnknownGeneration, Instances: []Instance{{ProcessID: "p0", ClientID: "a"}, {ProcessID: "p1", ClientID: "b"}}}
	threads := []ThreadStatus{{Name: "t1", MemberID: "m", Generation: 4}, {Name: "t2", Generation: 9}}
	after := before.WithLocal(Process{ProcessID: "p1", ClientID: "b"}, threads)
	if !after.Instances[1].Local || after.Instances[0].Local || len(after.Instances[1].Threads) != 2 {
		t.Errorf("the wrong instance is local: %+v", after.Instances)
	}
	if after.Generation != 4 {
		t.Errorf("generation %d, want 4: that of a thread that has not joined is void", after.Generation)
	}
	if before.Instances[1].Local || before.Generation != UnknownGeneration {
		t.Error("the receiver was changed")
	}
}

func TestWithLocalDescribesAnUnlistedProcessByItsThreads(t *testing.T) {
	threads := []ThreadStatus{
		{Name: "t2", MemberID: "m2", InstanceID: "i2", Generation: 3, Active: tasks("s_1")},
		{Name: "t1", MemberID: "m1", InstanceID: "i1", Generation: 3, Active: tasks("s_0")},
		{Name: "t3", InstanceID: "i3", Fenced: true}, // another process has i3
	}
	self := Process{ProcessID: "p0", ClientID: "a", Host: "h:1"}
	for name, instances := range map[string][]Instance{
		"not listed":            nil,
		"subscription withheld": {{ClientID: "a", Members: []Member{{MemberID: "m1", Problem: "rebalancing"}}}},
	} {
		got := Snapshot{Instances: instances}.WithLocal(self, threads).Instances
		if len(got) != 1 {
			t.Fatalf("%s: %d instances, want 1", name, len(got))
		}
		if got[0].Host != "h:1" || !got[0].Local || cmp.Diff(got[0].Active, tasks("s_0", "s_1")) != "" || cmp.Diff(got[0].InstanceIDs, []string{"i1", "i2"}) != "" {
			t.Errorf("%s: %+v", name, got[0])
		}
	}
}

func TestSnapshotAgeIsNeverNegative(t *testing.T) {
	at := time.Unix(100, 0)
	if age := (Snapshot{Taken: at}).Age(at.Add(-time.Second)); age != 0 {
		t.Errorf("age %v before it was taken, want 0", age)
	}
}

func TestTopicErrorSaysWhatAndWhatToDo(t *testing.T) {
	cause := errors.New("broker says no")
	err := error(&TopicError{Topic: "in", Problem: TopicMissing, Detail: "this source topic does not exist", Fix: "create it", Err: cause})
	for _, part := range []string{`"in"`, "does not exist", "create it"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if !errors.Is(err, cause) {
		t.Error("the broker's answer is not in the chain")
	}
}
