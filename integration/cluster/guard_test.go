package cluster

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestClientLeavesWhileParked: a JoinGroup parks until its rebalance completes. When its client goes away before, the
// connection must be closed and the request forgotten, for nobody else would.
func TestClientLeavesWhileParked(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := Start(InitialRebalanceDelay(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	for i := range 5 {
		nc, err := net.Dial("tcp", c.Brokers()[0])
		if err != nil {
			t.Fatal(err)
		}
		group := fmt.Sprint("g", i)
		join := kmsg.NewPtrJoinGroupRequest()
		join.Version, join.Group, join.InstanceID, join.ProtocolType = 9, group, kmsg.StringPtr("a"), "consumer"
		join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 45_000, 60_000
		join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "millrace"}}
		if _, err := nc.Write(encode(join, 1)); err != nil {
			t.Fatal(err)
		}
		until(ctx, t, "the join to park", func() bool {
			listed, err := adm.ListGroups(ctx)
			return err == nil && listed[group].State == "PreparingRebalance"
		})
		if err := nc.Close(); err != nil {
			t.Fatal(err)
		}
		until(ctx, t, "the connection to be closed", func() bool { return !c.connected(nc.LocalAddr()) })
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(c.groups.waiting); n > 1 { // the last may have been overtaken by the stop
		t.Errorf("%d requests are still waiting", n)
	}
}

// connected reports whether there is a connection of that client.
func (c *Cluster) connected(client net.Addr) bool {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	for g := range c.listener.guards {
		if g.RemoteAddr().String() == client.String() {
			return true
		}
	}
	return false
}

// until asks again and again.
func until(ctx context.Context, t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("waiting for %s: %v", what, ctx.Err())
		}
	}
}
