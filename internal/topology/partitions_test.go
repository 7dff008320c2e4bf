package topology_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
)

// graph draws topologies of names only.
type graph struct{ topology.Graph }

func (g *graph) source(internal bool, topics ...string) topology.NodeID {
	return g.Add(topology.Node{Kind: topology.Source, Name: "source-" + topics[0], Topics: topics, Internal: internal, Call: "main.go:1", Operator: "Stream"})
}

func (g *graph) sink(parent topology.NodeID, topic string, internal bool, partitions int32) {
	g.Add(topology.Node{
		Kind: topology.SinkKind, Name: "sink-" + topic, Topics: []string{topic}, Internal: internal, Partitions: partitions,
		Parents: []topology.NodeID{parent},
	})
}

// repartition sends parent through a repartition topic and returns the source behind it.
func (g *graph) repartition(parent topology.NodeID, topic string, partitions int32) topology.NodeID {
	g.sink(parent, topic, true, partitions)
	return g.source(true, topic)
}

func (g *graph) stateful(store string, parents ...topology.NodeID) topology.NodeID {
	g.AddStore(topology.Store{Spec: statestore.Spec{Name: store, Logged: true}})
	return g.Add(topology.Node{Name: "node-" + store, Stores: []string{store}, Parents: parents})
}

func (g *graph) resolve(t *testing.T, counts map[string]int32) (*topology.Layout, error) {
	t.Helper()
	plan, err := g.Build("app")
	if err != nil {
		t.Fatal(err)
	}
	return plan.Resolve(func(topic string) (int32, bool) {
		n, ok := counts[topic]
		return n, ok
	})
}

func (g *graph) mustResolve(t *testing.T, counts map[string]int32) *topology.Layout {
	t.Helper()
	l, err := g.resolve(t, counts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRepartitionTopicsFollowTheirWriters(t *testing.T) {
	var g graph
	a, b := g.source(false, "a"), g.source(false, "b")
	merged := g.Add(topology.Node{Name: "merge", Parents: []topology.NodeID{a, b}})
	first := g.repartition(merged, "first", 0)
	second := g.repartition(first, "second", 0)
	g.stateful("rows", second)
	l := g.mustResolve(t, map[string]int32{"a": 2, "b": 6})
	if l.Count("app-first") != 6 || l.Count("app-second") != 6 {
		t.Errorf("first has %d and second %d partitions, want the greatest count upstream, 6", l.Count("app-first"), l.Count("app-second"))
	}
	topics := l.InternalTopics()
	if changelog := topics[slices.IndexFunc(topics, func(t topology.InternalTopic) bool { return t.Changelog })]; changelog.Partitions != 6 {
		t.Errorf("the changelog has %d partitions, want one a task", changelog.Partitions)
	}
}

func TestExplicitCountWins(t *testing.T) {
	var g graph
	behind := g.repartition(g.source(false, "a"), "r", 3)
	g.repartition(behind, "next", 0)
	l := g.mustResolve(t, map[string]int32{"a": 8})
	if l.Count("app-r") != 3 || l.Count("app-next") != 3 {
		t.Errorf("got %d and %d, want 3 and 3", l.Count("app-r"), l.Count("app-next"))
	}
}

func TestTasks(t *testing.T) {
	var g graph
	g.sink(g.source(false, "short", "long"), "out", false, 0)
	l := g.mustResolve(t, map[string]int32{"short": 1, "long": 2})
	want := []taskid.ID{{Subtopology: "long", Partition: 0}, {Subtopology: "long", Partition: 1}}
	if got := l.Tasks(); !slices.Equal(got, want) {
		t.Fatalf("tasks %v, want %v", got, want)
	}
	if got := l.Sources(want[1]); len(got) != 1 || got[0].Topic != "long" {
		t.Errorf("task 1 reads %v, want the longer topic alone", got)
	}
	if got := l.Sources(taskid.ID{Subtopology: "nobody"}); got != nil {
		t.Errorf("an unknown task reads %v", got)
	}
}

func TestCoPartitioning(t *testing.T) {
	t.Run("external topics must agree", func(t *testing.T) {
		var g graph
		g.stateful("rows", g.source(false, "a"), g.source(false, "b"))
		_, err := g.resolve(t, map[string]int32{"a": 4, "b": 8})
		mismatch, ok := errors.AsType[*topology.CopartitionError](err)
		if !ok || !slices.Equal(mismatch.Topics, []string{"a", "b"}) || !slices.Equal(mismatch.Counts, []int32{4, 8}) {
			t.Fatalf("got %v, want a *CopartitionError with both topics", err)
		}
		for _, part := range []string{"a has 4", "b has 8", "Repartition"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	})
	t.Run("without state they may differ", func(t *testing.T) {
		var g graph
		g.sink(g.Add(topology.Node{Name: "merge", Parents: []topology.NodeID{g.source(false, "a"), g.source(false, "b")}}), "out", false, 0)
		if _, err := g.resolve(t, map[string]int32{"a": 4, "b": 8}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a repartition topic follows the external one, and so do those behind it", func(t *testing.T) {
		var g graph
		r := g.repartition(g.source(false, "big"), "r", 0)
		behind := g.stateful("rows", r, g.source(false, "a"))
		g.repartition(behind, "next", 0)
		l := g.mustResolve(t, map[string]int32{"big": 9, "a": 4})
		if l.Count("app-r") != 4 || l.Count("app-next") != 4 {
			t.Errorf("r has %d and next %d, want 4 and 4", l.Count("app-r"), l.Count("app-next"))
		}
	})
	t.Run("an explicit count cannot follow", func(t *testing.T) {
		var g graph
		r := g.repartition(g.source(false, "big"), "r", 3)
		g.stateful("rows", r, g.source(false, "a"))
		if _, err := g.resolve(t, map[string]int32{"big": 9, "a": 4}); err == nil {
			t.Fatal("3 and 4 partitions feed the same state")
		}
	})
	t.Run("repartition topics alone take the greatest", func(t *testing.T) {
		var g graph
		x, y := g.repartition(g.source(false, "a"), "x", 0), g.repartition(g.source(false, "b"), "y", 0)
		g.stateful("rows", x, y)
		l := g.mustResolve(t, map[string]int32{"a": 4, "b": 8})
		if l.Count("app-x") != 8 || l.Count("app-y") != 8 {
			t.Errorf("x has %d and y %d, want 8 and 8", l.Count("app-x"), l.Count("app-y"))
		}
	})
	t.Run("a shared store joins sub-topologies", func(t *testing.T) {
		var g graph
		g.stateful("rows", g.source(false, "a"))
		g.Add(topology.Node{Name: "reader", Stores: []string{"rows"}, Parents: []topology.NodeID{g.source(false, "b")}})
		plan, err := g.Build("app")
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Subtopologies) != 1 || plan.Subtopologies[0].ID != "a" {
			t.Fatalf("%d sub-topologies", len(plan.Subtopologies))
		}
		if _, err := g.resolve(t, map[string]int32{"a": 4, "b": 8}); err == nil {
			t.Error("4 and 8 partitions share a store")
		}
	})
}

func TestMissingTopics(t *testing.T) {
	var g graph
	g.source(false, "a")
	g.source(false, "b")
	_, err := g.resolve(t, map[string]int32{"a": 1})
	missing, ok := errors.AsType[*topology.MissingTopicsError](err)
	if !ok || !slices.Equal(missing.Topics, []string{"b"}) || !strings.Contains(err.Error(), "b; create them") {
		t.Fatalf("got %v, want a *MissingTopicsError for b", err)
	}
}

// TestRepartitionTopicOfItsOwnWriter: a stream merged with its repartitioned self reads what it writes.
func TestRepartitionTopicOfItsOwnWriter(t *testing.T) {
	var g graph
	a := g.source(false, "a")
	r := g.repartition(a, "r", 0)
	g.Add(topology.Node{Name: "merge", Parents: []topology.NodeID{a, r}})
	if got := g.mustResolve(t, map[string]int32{"a": 5}).Count("app-r"); got != 5 {
		t.Errorf("%d partitions, want 5", got)
	}
}

func TestCircleOfRepartitionTopics(t *testing.T) {
	var g graph
	x, y := g.source(true, "x"), g.source(true, "y")
	g.sink(x, "y", true, 0)
	g.sink(y, "x", true, 0)
	if _, err := g.resolve(t, nil); err == nil || !strings.Contains(err.Error(), "circle") {
		t.Fatalf("got %v, want an error about the circle", err)
	}
}

func TestExternalTopicWithTheNameOfAnInternalOne(t *testing.T) {
	var g graph
	g.repartition(g.source(false, "a"), "r", 0)
	g.source(false, "r")
	if _, err := g.Build("app"); err == nil || !strings.Contains(err.Error(), `"r"`) {
		t.Fatalf("got %v, want an error about the name", err)
	}
}
