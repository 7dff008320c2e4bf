package clients

import (
	"context"
	"fmt"
	"slices"

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
	"drafts":        changedOnce,
	"killed":        killed,
}

// bounced: both instances have come back, and in the same generation.
func bounced(ctx context.Context, c client, addr string) error {
	return cameBack(ctx, addr, "static-bounce", never, c.known("a"), c.known("b"))
}

// killed: so have both threads of both processes, the killed one in the same generation too. Then Kafka Streams ends it:
// it has thrown away the state that it finds without a clean end, and asks for a rebalance itself.
func killed(ctx context.Context, _ client, addr string) error {
	wiped := func(back map[string]int) bool { return back["b-1"]+back["b-2"] > 0 }
	return cameBack(ctx, addr, "killed", wiped, "a-1", "a-2", "b-1", "b-2")
}

func never(map[string]int) bool { return false }

// cameBack: each instance has come back once under a new member id, none was removed, and from the first return on the
// generation is the same, until the client may end it.
func cameBack(ctx context.Context, addr, group string, may func(back map[string]int) bool, instances ...string) error {
	all, err := history(ctx, addr, group)
	if err != nil {
		return err
	}
	settled := int32(-1) // the generation in which the first one came back
	back := map[string]int{}
	for i := 1; i < len(all); i++ {
		before, now := all[i-1], all[i]
		free := may(back)
		for _, id := range instances {
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
		if settled >= 0 && now.generation != settled && !free {
			return fmt.Errorf("a static member came back in generation %d, and then the group went on to %d", settled, now.generation)
		}
		if now.dynamic > 0 {
			return fmt.Errorf("%d members of generation %d have no instance id", now.dynamic, now.generation)
		}
	}
	for _, id := range instances {
		if back[id] != 1 {
			return fmt.Errorf("%s came back %d times in %d records; once is expected", id, back[id], len(all))
		}
	}
	return nil
}

// changedOnce: each of the four groups went from one membership to another in a single generation.
func changedOnce(ctx context.Context, _ client, addr string) error {
	for _, change := range []struct{ group, from, to string }{
		{"drafts-expected", "a", "a b c"},
		{"drafts-registration", "a b c", "c"},
		{"drafts-target", "a b c", "b c"},
		{"drafts-forced", "a b c", "a c"},
	} {
		all, err := history(ctx, addr, change.group)
		if err != nil {
			return err
		}
		last := slices.IndexFunc(all, func(s snapshot) bool { return s.ids() == change.from })
		for last >= 0 && last+1 < len(all) && (all[last+1].ids() == change.from || all[last+1].generation == all[last].generation) {
			last++
		}
		if last < 0 || last+1 == len(all) {
			return fmt.Errorf("%s: of %d records none follows the members %q", change.group, len(all), change.from)
		}
		if next := all[last+1]; next.ids() != change.to || next.generation != all[last].generation+1 {
			return fmt.Errorf("%s: from %q in generation %d to %q in generation %d; %q in the next one is expected",
				change.group, change.from, all[last].generation, next.ids(), next.generation, change.to)
		}
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
