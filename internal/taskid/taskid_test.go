package taskid

import "testing"

func TestParseIsTheInverseOfString(t *testing.T) {
	for _, id := range []ID{{"counts", 0}, {"a_b", 3}, {"x-1.y", 2147483647}} {
		got, err := Parse(id.String())
		if err != nil || got != id {
			t.Errorf("Parse(%q) = %v, %v; want %v", id, got, err, id)
		}
	}
}

func TestParseRejects(t *testing.T) {
	for _, s := range []string{"", "_1", "a", "a_", "a_-1", "a_x", "a_2147483648"} {
		if id, err := Parse(s); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", s, id)
		}
	}
}

func TestCompareOrdersByNameThenPartition(t *testing.T) {
	if (ID{"a", 9}).Compare(ID{"b", 1}) >= 0 || (ID{"a", 2}).Compare(ID{"a", 10}) >= 0 || (ID{"a", 2}).Compare(ID{"a", 2}) != 0 {
		t.Error("want order by sub-topology, then numerically by partition")
	}
}
