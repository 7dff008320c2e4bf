package clients

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// checks look at what a case has left behind in the cluster, whatever its client says. They run when the client says
// that it has passed.
var checks = map[string]func(ctx context.Context, c client, addr string) error{
	"static-bounce": bounced,
	"fenced":        replaced,
	"batch-removal": removed,
	"transactions":  decided,
}

// bounced: both instances have come back under new member ids, and from the first return on the generation is the same.
func bounced(ctx context.Context, c client, addr string) error {
	all, err := history(ctx, addr, "static-bounce")
	if err != nil {
		return err
	}
	a, b := c.known("a"), c.known("b")
	settled := int32(-1) // the generation in which the first one came back
	back := map[string]int{}
	for i := 1; i < len(all); i++ {
		before, now := all[i-1], all[i]
		for _, id := range []string{a, b} {
			if before.members[id] == "" || now.members[id] == before.members[id] {
				continue
			}
			if now.members[id] == "" {
				return fmt.Errorf("static member %s was removed in generation %d", id, now.generation)
			}
			back[id]++
			if settled < 0 {
				settled = before.generation
			}
		}
		if settled >= 0 && now.generation != settled {
			return fmt.Errorf("a static member came back in generation %d, and then the group went on to %d", settled, now.generation)
		}
		if now.dynamic > 0 {
			return fmt.Errorf("%d members of generation %d have no instance id", now.dynamic, now.generation)
		}
	}
	if back[a] != 1 || back[b] != 1 {
		return fmt.Errorf("%s came back %d times and %s %d times in %d records; once each is expected", a, back[a], b, back[b], len(all))
	}
	return nil
}

// replaced: one instance id has had two member ids, and the second one has it at the end.
func replaced(ctx context.Context, c client, addr string) error {
	all, err := history(ctx, addr, "fenced")
	if err != nil {
		return err
	}
	id := c.known("a")
	var members []string
	for _, s := range all {
		if m := s.members[id]; m != "" && (len(members) == 0 || members[len(members)-1] != m) {
			members = append(members, m)
		}
	}
	if len(members) != 2 {
		return fmt.Errorf("instance %s was the members %v; two are expected, one after the other", id, members)
	}
	return nil
}

// removed: the members that stayed were there, and one generation later none is.
func removed(ctx context.Context, c client, addr string) error {
	all, err := history(ctx, addr, "batch-removal")
	if err != nil {
		return err
	}
	if len(all) < 2 {
		return fmt.Errorf("the group has %d records", len(all))
	}
	before, after := all[len(all)-2], all[len(all)-1]
	if before.members[c.known("a")] == "" || before.members[c.known("b")] == "" || len(after.members) != 0 || after.dynamic != 0 {
		return fmt.Errorf("from %+v to %+v: both instances are expected to leave at once", before, after)
	}
	if after.generation != before.generation+1 {
		return fmt.Errorf("the removal took the group from generation %d to %d", before.generation, after.generation)
	}
	return nil
}

// decided: the output that was committed, the mark behind it left out, is as long as the committed offset says, and
// there is output that was not committed.
func decided(ctx context.Context, _ client, addr string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer client.Close()
	offsets, err := kadm.NewClient(client).FetchOffsets(ctx, "transactions")
	if err != nil {
		return err
	}
	in, ok := offsets.Lookup("transactions-in", 0)
	if !ok || in.Err != nil {
		return fmt.Errorf("no committed offset (%v)", in.Err)
	}
	var committed, written int64
	count := func(n *int64) func(*kgo.Record) error {
		return func(*kgo.Record) error { *n++; return nil }
	}
	if err := readTopic(ctx, addr, "transactions-out", kgo.ReadCommitted(), count(&committed)); err != nil {
		return err
	}
	if err := readTopic(ctx, addr, "transactions-out", kgo.ReadUncommitted(), count(&written)); err != nil {
		return err
	}
	if committed-1 != in.At || written <= committed {
		return fmt.Errorf("offset %d is committed, %d records are, %d were written", in.At, committed-1, written-1)
	}
	return nil
}

// stayedDynamic: a client without static membership has had no instance id in any group.
func stayedDynamic(ctx context.Context, addr, group string) error {
	all, err := history(ctx, addr, group)
	if err != nil {
		return err
	}
	for _, s := range all {
		if len(s.members) > 0 {
			return fmt.Errorf("the client has no static membership, but its group had the instances %v", s.members)
		}
	}
	return nil
}
