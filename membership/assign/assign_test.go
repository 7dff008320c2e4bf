package assign

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/millrace-io/millrace/internal/taskid"
)

// TestPlans runs the cases of testdata/plans.txt. The input lists "tasks <sub>:<partitions>…", "stateless <sub>:<partitions>…" and
// "<member> process=p instance=i generation=n claims=<sub>_<n>,… previous=… standby=… knows=<sub>,… offsets=<sub>_<n>:<sum>,…";
// the output is the plan: one line a member, then one line a move.
func TestPlans(t *testing.T) {
	datadriven.RunTest(t, "testdata/plans.txt", func(t *testing.T, d *datadriven.TestData) string {
		in, err := parseInput(t, d)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return describe(Assign(in))
	})
}

func parseInput(t *testing.T, d *datadriven.TestData) (Input, error) {
	in := Input{}
	if d.HasArg("standbys") {
		d.ScanArgs(t, "standbys", &in.Standbys)
	}
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		if words[0] == "tasks" || words[0] == "stateless" {
			for _, word := range words[1:] {
				sub, n, _ := strings.Cut(word, ":")
				for _, task := range tasks(sub, atoi(n)) {
					task.Stateful = words[0] == "tasks"
					in.Tasks = append(in.Tasks, task)
				}
			}
			continue
		}
		m := Member{ID: words[0], Offsets: map[taskid.ID]int64{}}
		for _, word := range words[1:] {
			if err := setField(&m, word); err != nil {
				return in, err
			}
		}
		in.Members = append(in.Members, m)
	}
	return in, nil
}

func setField(m *Member, word string) error {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "process":
		m.ProcessID = value
	case "instance":
		m.InstanceID = value
	case "generation":
		m.Generation = int32(atoi(value))
	case "knows":
		m.Knows = strings.Split(value, ",")
	case "claims":
		m.Claims = parseIDs(value)
	case "previous":
		m.Previous = parseIDs(value)
	case "standby":
		m.Standby = parseIDs(value)
	case "offsets":
		for item := range strings.SplitSeq(value, ",") {
			id, sum, _ := strings.Cut(item, ":")
			m.Offsets[parseIDs(id)[0]] = int64(atoi(sum))
		}
	default:
		return fmt.Errorf("unknown field %q", word)
	}
	return nil
}

func parseIDs(s string) (ids []taskid.ID) {
	for item := range strings.SplitSeq(s, ",") {
		id, err := taskid.Parse(item)
		if err != nil {
			panic(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func atoi(s string) (n int) {
	if _, err := fmt.Sscan(s, &n); err != nil {
		panic(fmt.Sprintf("%q is no number: %v", s, err))
	}
	return n
}

// tasks returns n stateful tasks of a sub-topology.
func tasks(sub string, n int) []Task {
	list := make([]Task, n)
	for i := range list {
		list[i] = Task{ID: taskid.ID{Subtopology: sub, Partition: int32(i)}, Stateful: true}
		list[i].Sources = []TopicPartition{{Topic: sub + "-in", Partition: int32(i)}}
	}
	return list
}

func describe(p Plan) string {
	var b strings.Builder
	for _, g := range p.Grants {
		fmt.Fprintf(&b, "%s active=%v", g.Member, g.Active)
		if len(g.Standby) > 0 {
			fmt.Fprintf(&b, " standby=%v", g.Standby)
		}
		if len(g.Release) > 0 {
			fmt.Fprintf(&b, " release=%v", g.Release)
		}
		b.WriteByte('\n')
	}
	for _, m := range p.Moves {
		fmt.Fprintln(&b, m)
	}
	return b.String()
}

func TestHash(t *testing.T) {
	base := append(tasks("a", 3), tasks("b", 2)...)
	h := Hash(base, 1)
	permuted := []Task{base[4], base[0], base[3], base[2], base[1], base[0]}
	if Hash(permuted, 1) != h {
		t.Error("the hash depends on the order of the tasks")
	}
	changed := append([]Task(nil), base...)
	changed[0].Sources = []TopicPartition{{Topic: "other", Partition: 0}}
	stateless := append([]Task(nil), base...)
	stateless[1].Stateful = false
	for name, other := range map[string]uint64{
		"standbys": Hash(base, 0), "a task less": Hash(base[:4], 1), "a source": Hash(changed, 1), "state": Hash(stateless, 1), "nothing": Hash(nil, 0),
	} {
		if other == h || other == 0 {
			t.Errorf("a change of %s gives hash %x, the base has %x", name, other, h)
		}
	}
}

func BenchmarkAssign(b *testing.B) {
	in := Input{Tasks: append(tasks("counts", 500), tasks("split", 500)...), Standbys: 1}
	for i := range 100 {
		in.Members = append(in.Members, Member{ID: fmt.Sprint("m", i), ProcessID: fmt.Sprint("p", i/4), InstanceID: fmt.Sprint("i", i)})
	}
	plan := Assign(in)
	for i := range in.Members {
		g, _ := plan.Of(in.Members[i].ID)
		in.Members[i].Claims, in.Members[i].Standby = g.Active, g.Standby
	}
	in.Members = append(in.Members, Member{ID: "new", ProcessID: "pnew", InstanceID: "inew"})
	b.ReportAllocs()
	for b.Loop() {
		Assign(in)
	}
}
