package murmur2

import "testing"

// The expected values are those that Kafka's own unit test for its Java implementation pins.
func TestSumKnownAnswers(t *testing.T) {
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(Sum([]byte(key))); got != want {
			t.Errorf("Sum(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestPartitionIsNeverNegative(t *testing.T) {
	key := make([]byte, 0, 64)
	for i := range 64 {
		key = append(key, byte(i*37))
		if p := Partition(key, 7); p < 0 || p >= 7 {
			t.Fatalf("Partition(%v, 7) = %d", key, p)
		}
	}
}

func TestPartitionClearsTheSignBit(t *testing.T) {
	// murmur2("21") is negative as an int32; Kafka clears the sign bit and does not take the absolute value.
	if got, want := Partition([]byte("21"), 1000), int32((-973932308&0x7fffffff)%1000); got != want {
		t.Fatalf("Partition = %d, want %d", got, want)
	}
}
