package streams_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/streams"
	"github.com/millrace-io/millrace/streams/serde"
	"github.com/millrace-io/millrace/streams/window"
)

func four(string) (int32, bool) { return 4, true }

func mustPlan(t *testing.T, b *streams.Builder) *topology.Plan {
	t.Helper()
	plan, err := b.Build("app")
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// stores and internal return the names that Kafka Streams shares with its brokers.
func stores(plan *topology.Plan) []string {
	var names []string
	for _, sub := range plan.Subtopologies {
		for _, s := range sub.Stores {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

func internal(t *testing.T, plan *topology.Plan) []string {
	t.Helper()
	topics, err := plan.InternalTopics(four)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, topic := range topics {
		names[topic.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// TestGeneratedNames compares with what Kafka Streams 4.4 generates for the same topologies.
func TestGeneratedNames(t *testing.T) {
	value := func(_, v string) string { return v }
	tumbling := window.Tumbling(10 * time.Millisecond).Grace(0)
	for _, test := range []struct {
		name             string
		build            func(grouped streams.GroupedStream[string, string])
		stores, internal []string
		operator         string
	}{
		{"count", func(g streams.GroupedStream[string, string]) { g.Count("").ToStream() },
			[]string{"KSTREAM-AGGREGATE-STATE-STORE-0000000003"},
			[]string{"app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog", "app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition"},
			"KTABLE-TOSTREAM-0000000008"},
		{"named count", func(g streams.GroupedStream[string, string]) { g.Count("st").ToStream() },
			[]string{"st"}, []string{"app-st-changelog", "app-st-repartition"}, "KTABLE-TOSTREAM-0000000006"},
		{"reduce", func(g streams.GroupedStream[string, string]) { g.Reduce("", value).ToStream() },
			[]string{"KSTREAM-REDUCE-STATE-STORE-0000000002"},
			[]string{"app-KSTREAM-REDUCE-STATE-STORE-0000000002-changelog", "app-KSTREAM-REDUCE-STATE-STORE-0000000002-repartition"},
			"KTABLE-TOSTREAM-0000000007"},
		{"windowed count", func(g streams.GroupedStream[string, string]) {
			g.WindowedBy(tumbling).Count("").ToStream(func(k window.Key[string]) window.Key[string] { return k })
		},
			[]string{"KSTREAM-AGGREGATE-STATE-STORE-0000000003"},
			[]string{"app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog", "app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition"},
			"KTABLE-TOSTREAM-0000000008"},
		{"windowed reduce", func(g streams.GroupedStream[string, string]) {
			g.WindowedBy(tumbling).Reduce("", value).ToStream(func(k window.Key[string]) window.Key[string] { return k })
		},
			[]string{"KSTREAM-REDUCE-STATE-STORE-0000000002"},
			[]string{"app-KSTREAM-REDUCE-STATE-STORE-0000000002-changelog", "app-KSTREAM-REDUCE-STATE-STORE-0000000002-repartition"},
			"KTABLE-TOSTREAM-0000000007"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := streams.NewBuilder(streams.GeneratedNames())
			test.build(b.Stream("in", serde.String, serde.String).GroupBy(value, nil))
			plan := mustPlan(t, b)
			if got := stores(plan); !slices.Equal(got, test.stores) {
				t.Errorf("stores %v, want %v", got, test.stores)
			}
			if got := internal(t, plan); !slices.Equal(got, test.internal) {
				t.Errorf("internal topics %v, want %v", got, test.internal)
			}
			if !strings.Contains(plan.Describe(), test.operator) {
				t.Errorf("no operator %s in\n%s", test.operator, plan.Describe())
			}
		})
	}
}

// TestNamedGroupingIsRepartitionedOnce: a grouping with a name owns one repartition topic for all its operators.
func TestNamedGroupingIsRepartitionedOnce(t *testing.T) {
	b := streams.NewBuilder(streams.GeneratedNames())
	g := b.Stream("in", serde.String, serde.String).GroupBy(func(_, v string) string { return v }, nil, streams.Named("gg"))
	g.Count("").ToStream().ForEach(func(string, int64) {})
	g.Reduce("", func(a, v string) string { return a + v })
	plan := mustPlan(t, b)
	want := `Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [in])
      --> gg
    Processor: gg (stores: [])
      --> gg-repartition-filter
      <-- KSTREAM-SOURCE-0000000000
    Processor: gg-repartition-filter (stores: [])
      --> gg-repartition-sink
      <-- gg
    Sink: gg-repartition-sink (topic: gg-repartition)
      <-- gg-repartition-filter

  Sub-topology: 1
    Source: gg-repartition-source (topics: [gg-repartition])
      --> KSTREAM-AGGREGATE-0000000004, KSTREAM-REDUCE-0000000011
    Processor: KSTREAM-AGGREGATE-0000000004 (stores: [KSTREAM-AGGREGATE-STATE-STORE-0000000003])
      --> KTABLE-TOSTREAM-0000000008
      <-- gg-repartition-source
    Processor: KTABLE-TOSTREAM-0000000008 (stores: [])
      --> KSTREAM-FOREACH-0000000009
      <-- KSTREAM-AGGREGATE-0000000004
    Processor: KSTREAM-FOREACH-0000000009 (stores: [])
      --> none
      <-- KTABLE-TOSTREAM-0000000008
    Processor: KSTREAM-REDUCE-0000000011 (stores: [KSTREAM-REDUCE-STATE-STORE-0000000010])
      --> none
      <-- gg-repartition-source

`
	if diff := cmp.Diff(want, plan.Describe()); diff != "" {
		t.Errorf("description (-want +got):\n%s", diff)
	}
}

func TestMergedAndSharedSources(t *testing.T) {
	b := streams.NewBuilder()
	first := b.Stream("in", serde.String, serde.String)
	second := b.Stream("in", serde.Bytes, serde.Bytes) // the same topic, decoded differently
	second.MapValues(func(v []byte) int64 { return int64(len(v)) }).To("lengths", nil, nil)
	first.Merge(b.Stream("in2", serde.String, serde.String)).To("out", nil, nil)
	want := `Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [in])
      --> KSTREAM-MAPVALUES-0000000002, KSTREAM-MERGE-0000000005
    Source: KSTREAM-SOURCE-0000000004 (topics: [in2])
      --> KSTREAM-MERGE-0000000005
    Processor: KSTREAM-MAPVALUES-0000000002 (stores: [])
      --> KSTREAM-SINK-0000000003
      <-- KSTREAM-SOURCE-0000000000
    Processor: KSTREAM-MERGE-0000000005 (stores: [])
      --> KSTREAM-SINK-0000000006
      <-- KSTREAM-SOURCE-0000000000, KSTREAM-SOURCE-0000000004
    Sink: KSTREAM-SINK-0000000003 (topic: lengths)
      <-- KSTREAM-MAPVALUES-0000000002
    Sink: KSTREAM-SINK-0000000006 (topic: out)
      <-- KSTREAM-MERGE-0000000005

`
	if diff := cmp.Diff(want, mustPlan(t, b).Describe()); diff != "" {
		t.Errorf("description (-want +got):\n%s", diff)
	}
}

func TestInternalTopicConfigs(t *testing.T) {
	b := streams.NewBuilder()
	g := b.Stream("in", serde.String, serde.String).GroupBy(func(_, v string) string { return v }, nil, streams.Named("g"))
	g.Count("rows")
	g.Count("volatile", streams.NotLogged())
	g.WindowedBy(window.Tumbling(10 * time.Millisecond).Grace(5 * time.Millisecond)).Count("windows")
	g.WindowedBy(window.Tumbling(10*time.Millisecond).Grace(0)).Count("kept", streams.Retention(time.Second))
	topics, err := mustPlan(t, b).InternalTopics(four)
	if err != nil {
		t.Fatal(err)
	}
	windowed := func(retention string) map[string]string {
		return map[string]string{"cleanup.policy": "compact,delete", "message.timestamp.type": "CreateTime", "retention.ms": retention}
	}
	want := map[string]map[string]string{
		"app-g-repartition": {
			"cleanup.policy": "delete", "message.timestamp.type": "CreateTime", "retention.ms": "-1", "segment.bytes": "52428800",
		},
		"app-rows-changelog":    {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"},
		"app-windows-changelog": windowed("86400015"),
		"app-kept-changelog":    windowed("86401000"),
	}
	got := map[string]map[string]string{}
	for _, topic := range topics {
		got[topic.Name] = topic.Config
		if topic.Partitions != 4 {
			t.Errorf("%s has %d partitions, want 4", topic.Name, topic.Partitions)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("topics (-want +got):\n%s", diff)
	}
}
