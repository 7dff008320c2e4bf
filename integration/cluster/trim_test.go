package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestStartTrimsTheOffsetsTopic commits the same few offsets very often. The next start must shorten the log and keep
// the offsets, through a stop and a kill.
func TestStartTrimsTheOffsetsTopic(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Start(DataDir(t.TempDir()), Topic("lines", 50))
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	adm := kadm.NewClient(cl)
	const rounds = trimAbove/50 + 1
	for round := range int64(rounds) {
		offsets := kadm.Offsets{}
		for p := range int32(50) {
			offsets.AddOffset("lines", p, round+int64(p), -1)
		}
		if err := adm.CommitAllOffsets(ctx, "g", offsets); err != nil {
			t.Fatal(err)
		}
	}
	cl.Close()
	want := map[string]int64{}
	for p := range 50 {
		want[fmt.Sprintf("lines-%d", p)] = rounds - 1 + int64(p)
	}
	for _, stop := range []func(*Cluster) error{(*Cluster).Close, (*Cluster).Kill, (*Cluster).Close} {
		if err := stop(c); err != nil {
			t.Fatal(err)
		}
		if c, err = Start(DataDir(c.DataDir())); err != nil {
			t.Fatal(err)
		}
		if got := allOffsets(ctx, t, c); !cmp.Equal(got, want) {
			t.Fatal(cmp.Diff(want, got))
		}
		start, err := c.broker.startOffset(ctx)
		if err != nil {
			t.Fatal(err)
		}
		end, err := c.broker.endOffset(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if end-start > trimFactor*50 {
			t.Errorf("the offsets topic is %d records long for 50 offsets", end-start)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func allOffsets(ctx context.Context, t *testing.T, c *Cluster) map[string]int64 {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	resp, err := kadm.NewClient(cl).FetchOffsets(ctx, "g")
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	resp.Each(func(o kadm.OffsetResponse) { got[fmt.Sprintf("%s-%d", o.Topic, o.Partition)] = o.At })
	return got
}
