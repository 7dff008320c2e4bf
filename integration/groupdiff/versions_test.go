package groupdiff

import (
	"fmt"
	"testing"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// With the Kafka profile, every group request, and the one that finds the coordinator, is served in the versions in which Kafka 4.4 serves it.
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
			if coordinator.Handles(k.ApiKey) || k.ApiKey == kmsg.FindCoordinator.Int16() {
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

// FindCoordinator is asked for groups and transactions, for one key and for several, and for a kind that does not exist.
func TestFindCoordinator(t *testing.T) {
	b := newBench(t)
	for version := range int16(7) {
		for kind := range int8(4) {
			var answers [2]string
			for s, addr := range b.addrs {
				q := kmsg.NewPtrFindCoordinatorRequest()
				q.Version, q.CoordinatorType, q.CoordinatorKey, q.CoordinatorKeys = version, kind, "groupdiff", []string{"groupdiff", "other"}
				resp, err := newSide(addr, addr).call(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				answers[s] = renderFound(resp.(*kmsg.FindCoordinatorResponse), addr)
			}
			if answers[0] != answers[1] {
				t.Errorf("version %d, kind %d\nkafka: %s\nours:  %s", version, kind, answers[0], answers[1])
			}
		}
	}
}

// renderFound writes down which brokers were named; the one that was asked is called so.
func renderFound(r *kmsg.FindCoordinatorResponse, asked string) string {
	found := func(key string, code int16, host string, port int32) string {
		addr := fmt.Sprintf("%s:%d", host, port)
		switch {
		case code != 0:
			return key + " " + errorName(code)
		case addr == asked:
			addr = "asked"
		}
		return fmt.Sprintf("%s at %s", key, addr)
	}
	if r.Version < 4 {
		return found("", r.ErrorCode, r.Host, r.Port)
	}
	var list []string
	for _, c := range r.Coordinators {
		list = append(list, found(c.Key, c.ErrorCode, c.Host, c.Port))
	}
	return sorted(list)
}
