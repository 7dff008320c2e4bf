package groupdiff

import (
	"fmt"
	"testing"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// With the Kafka profile, every group request is served in the versions in which Kafka 4.4 serves it.
func TestVersionRanges(t *testing.T) {
	b := newBench(t)
	var ranges [2]map[string]string
	for s, addr := range b.addrs {
		q := kmsg.NewPtrApiVersionsRequest()
		resp, err := newSide(addr, addr).call(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		ranges[s] = map[string]string{}
		for _, k := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
			if coordinator.Handles(k.ApiKey) {
				ranges[s][kmsg.NameForKey(k.ApiKey)] = fmt.Sprintf("%d-%d", k.MinVersion, k.MaxVersion)
			}
		}
	}
	for name, want := range ranges[0] {
		if got := ranges[1][name]; got != want {
			t.Errorf("%s is served in %s, Kafka serves %s", name, got, want)
		}
	}
}
