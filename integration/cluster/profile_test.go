package cluster_test

import (
	"testing"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Each profile tells the versions that it serves: Kafka those of Kafka 4, KIP345 also what old clients speak.
func TestProfilesTellTheirVersions(t *testing.T) {
	for profile, want := range map[coordinator.Profile]map[int16]int16{
		coordinator.Kafka:  {8: 2, 9: 1, 11: 0},
		coordinator.KIP345: {8: 0, 9: 0, 11: 0},
	} {
		c := start(t, cluster.Profile(profile))
		client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(t.Context(), client)
		client.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range resp.ApiKeys {
			if lowest, ok := want[k.ApiKey]; ok && k.MinVersion != lowest {
				t.Errorf("%v serves %s from version %d on, want %d", profile, kmsg.NameForKey(k.ApiKey), k.MinVersion, lowest)
			}
		}
	}
}
