package coordinator

import "testing"

// The hashes are those of java.lang.String.hashCode.
func TestPartitionForIsJavasHash(t *testing.T) {
	for _, c := range []struct {
		group string
		hash  int32 // absolute
	}{
		{"", 0},
		{"a", 97},
		{"foo", 101574},
		{"wordcount", 893673541},
		{"polygenelubricants", 0},          // hashes to the least integer, whose absolute value Kafka takes as 0
		{"\U0001F600", 1772899},            // a surrogate pair in Java
		{"my-group-2147483647", 750282181}, // a negative hash
	} {
		for _, n := range []int32{1, 50} {
			got := PartitionFor(c.group, n)
			if got != c.hash%n {
				t.Errorf("PartitionFor(%q, %d) = %d, want %d", c.group, n, got, c.hash%n)
			}
		}
	}
}
