package streamstest_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-io/millrace/streams/window"
)

// leastCovered is how many vectors of each file ran when this was written: coverage must not shrink unnoticed.
var leastCovered = map[string]int{
	"dsl_vectors.json":       56,
	"dsl_codec_vectors.json": 3,
	"random_vectors.json":    108,
}

// TestVectors runs the vectors in testdata, and those in the files that VECTOR_FILES names (separated like PATH). A vector
// that needs an operator or option which does not exist is reported as not covered, with what it needs.
func TestVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/*_vectors.json")
	if err != nil || len(files) < len(leastCovered) {
		t.Fatalf("files %v, %v", files, err)
	}
	if more := os.Getenv("VECTOR_FILES"); more != "" {
		files = append(files, filepath.SplitList(more)...)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { runFile(t, file) })
	}
}

func runFile(t *testing.T, file string) {
	vectors, err := readVectors(file)
	if err != nil {
		t.Fatal(err)
	}
	ran, missing := 0, map[string][]string{}
	for _, v := range vectors {
		t.Run(v.ID, func(t *testing.T) {
			o := runVector(v)
			if o.missing != "" {
				missing[o.missing] = append(missing[o.missing], v.ID)
				t.Skipf("not covered: %s", o.missing)
			}
			ran++
			for _, w := range o.wrong {
				t.Error(w)
			}
		})
	}
	t.Logf("%s: %d of %d vectors ran", file, ran, len(vectors))
	for _, reason := range slices.Sorted(maps.Keys(missing)) {
		t.Logf("not covered: %s: %d: %s", reason, len(missing[reason]), strings.Join(missing[reason], " "))
	}
	if least := leastCovered[filepath.Base(file)]; ran < least {
		t.Errorf("%d vectors ran, want at least %d", ran, least)
	}
}

// TestVectorsCanFail: each way of falsifying an expectation is reported, and unknown parts are not passed over.
func TestVectorsCanFail(t *testing.T) {
	vectors := map[string]vector{}
	for _, file := range []string{"testdata/dsl_vectors.json", "testdata/dsl_codec_vectors.json"} {
		list, err := readVectors(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range list {
			vectors[v.ID] = v
		}
	}
	for _, c := range []struct{ id, from, to, report string }{
		{"agg-count-basic", `"value": 2`, `"value": 3`, "output out"},
		{"agg-count-basic", `"key": "a"`, `"key": "z"`, "output out"},
		{"agg-count-basic", `"ts": 1`, `"ts": 8`, "output out"},
		{"agg-count-basic", `"outputs"`, `"internal_topics": {}, "outputs"`, "internal topics"},
		{"agg-count-basic", `"outputs"`, `"store_names": ["x"], "outputs"`, "store names"},
		{"agg-count-basic", `"outputs"`, `"error": {"at_input": 0}, "outputs"`, "no input failed"},
		{"agg-count-basic", `"outputs"`, `"error": {"at": "build"}, "outputs"`, "want an error: true"},
		{"agg-count-basic", `"outputs"`, `"surprise": 1, "outputs"`, "cannot be read"},
		{"agg-count-basic", `"out":`, `"elsewhere":`, "does not write it"},
		{"agg-count-null-key-value", `"dropped_records": 2`, `"dropped_records": 1`, "records dropped"},
		{"stateless-filter", `["h", "1"]`, `["h", "2"]`, "output out"},
		{"win-tumbling-basic", `"end": 10`, `"end": 11`, "output out"},
		{"naming-wordcount", `KSTREAM-FLATMAPVALUES-0000000001`, `KSTREAM-FLATMAPVALUES-0000000002`, "description"},
		{"naming-wordcount", `"cleanup.policy": "compact"`, `"cleanup.policy": "delete"`, "internal topics"},
		{"err-processing-fail", `"at_input": 1`, `"at_input": 2`, "input 1 failed"},
		{"naming-explicit-enforced", `"error": {"at": "build"}`, `"outputs": {}`, "want an error: false"},
		{"codec-kv", `"key_hex": "61"`, `"key_hex": "62"`, "bytes on app-st-changelog"},
		{"codec-kv", `"ts": 5`, `"ts": 6`, "bytes on app-st-changelog"},
	} {
		v, ok := vectors[c.id]
		if !ok || !strings.Contains(string(v.Expect), c.from) {
			t.Errorf("%s: there is no %s to falsify", c.id, c.from)
			continue
		}
		v.Expect = json.RawMessage(strings.Replace(string(v.Expect), c.from, c.to, 1))
		if o := runVector(v); !strings.Contains(strings.Join(o.wrong, "\n"), c.report) {
			t.Errorf("%s with %s instead of %s: reported %q %q, want %q", c.id, c.to, c.from, o.missing, o.wrong, c.report)
		}
	}
}

func TestVectorsNameWhatIsNotCovered(t *testing.T) {
	base := func() vector {
		return vector{Topology: []statement{{"op": "stream", "id": "s", "topic": "in"}}, Expect: json.RawMessage(`{}`)}
	}
	for want, change := range map[string]func(*vector){
		"op teleport":               func(v *vector) { v.Topology = append(v.Topology, statement{"op": "teleport"}) },
		"option speed of op stream": func(v *vector) { v.Topology[0]["speed"] = "high" },
		"type float":                func(v *vector) { v.Topology[0]["value_type"] = "float" },
		"config acks=all":           func(v *vector) { v.Config = map[string]string{"acks": "all"} },
		"predicate function sometime": func(v *vector) {
			v.Topology = append(v.Topology, statement{"op": "filter", "input": "s", "fn": "sometime"})
		},
		"op table_filter on Stream": func(v *vector) {
			v.Topology = append(v.Topology, statement{"op": "table_filter", "input": "s", "fn": "true"})
		},
	} {
		v := base()
		change(&v)
		if o := runVector(v); !strings.HasPrefix(o.missing, want) {
			t.Errorf("missing %q, want %q", o.missing, want)
		}
	}
}

func unpackWindow(k window.Key[any]) (any, vectorWindow) {
	return k.Key, vectorWindow{Start: k.Start, End: k.End}
}
