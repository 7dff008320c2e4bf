package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// joinAll makes the members of a group.
func joinAll(t *testing.T, ctx context.Context, group string, instances []string, opts ...kgo.Opt) {
	t.Helper()
	var joined sync.WaitGroup
	for _, instance := range instances {
		joined.Go(func() {
			if err := joinOne(ctx, group, instance, len(instances), opts...); err != nil {
				t.Error(err)
			}
		})
	}
	joined.Wait()
}

// What is emulated is emulated on a real Kafka.
func TestEmulationOnKafka(t *testing.T) {
	brokers := os.Getenv("KAFKA_BOOTSTRAP")
	if brokers == "" {
		t.Skip("KAFKA_BOOTSTRAP is not set: the emulation meets a real broker in make test-kafka only")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, test := range map[string]struct {
		verb []string
		want string
	}{
		"rebalance":         {[]string{"force-rebalance"}, "an id that left before it joined"},
		"members gone":      {[]string{"force-rebalance", "-instance-ids", "b"}, "removed: b"},
		"expected":          {[]string{"expect"}, "removed: b"},
		"members of a real": {[]string{"members"}, "Stable, 2 members"},
	} {
		t.Run(name, func(t *testing.T) {
			group := "cli-" + strings.ToLower(rand.Text()[:8])
			joinAll(t, ctx, group, []string{"a", "b"}, kgo.SeedBrokers(brokers))
			args := append([]string{test.verb[0], "-brokers", brokers, "-group", group}, test.verb[1:]...)
			if test.verb[0] == "expect" {
				args = append(args, "-remove-now", "a")
			}
			var out, said bytes.Buffer
			if status := run(ctx, stdio{nil, &out, &said}, args); status != statusOK || !strings.Contains(out.String(), test.want) {
				t.Errorf("status %d, want %q:\n%s%s", status, test.want, &out, &said)
			}
		})
	}
}
