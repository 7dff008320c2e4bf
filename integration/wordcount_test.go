package integration

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/check"
	"github.com/millrace-io/millrace/streams"
)

var guarantees = []streams.Guarantee{streams.AtLeastOnce, streams.ExactlyOnce}

// P7: the same input gives the same output here as a replay in one thread, record by record and in order, on
// whichever cluster this runs. Without a failure that holds for both guarantees.
func TestWordCountEqualsTheReplay(t *testing.T) {
	for _, guarantee := range guarantees {
		t.Run(guarantee.String(), func(t *testing.T) {
			ctx, j, in := patient(t), newJob(t), newInput()
			client := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
			in.feed(t, client, j, 2000)
			b, table := j.topology()
			a := start(t, b, j.config("wc-0", t.TempDir(), guarantee))
			follower := j.follow(t)
			if err := follower.Await(ctx, in.fed()); err != nil {
				t.Fatal(err)
			}
			in.feed(t, client, j, 500)
			if err := follower.Await(ctx, in.fed()); err != nil {
				t.Fatal(err)
			}
			a.await(t, ctx)
			view, err := a.View(table.Ref())
			if err != nil {
				t.Fatal(err)
			}
			// what a reader of the sink has seen is committed, and local state follows the commit at once
			want := check.Totals(in.wanted())
			word := string(in.words[0])
			awaitCount(t, ctx, view, word, want[word])
			a.close(t)
			j.compare(t, in)
		})
	}
}

// A graceful restart on the same directory continues where it stopped: nothing is counted twice, whatever the
// guarantee, and static members keep their place.
func TestGracefulRestartContinues(t *testing.T) {
	for _, guarantee := range guarantees {
		t.Run(guarantee.String(), func(t *testing.T) {
			ctx, j, in, dir := patient(t), newJob(t), newInput(), t.TempDir()
			client := newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
			follower := j.follow(t)
			for range 3 {
				b, _ := j.topology()
				a := start(t, b, j.config("wc-0", dir, guarantee))
				in.feed(t, client, j, 300)
				if err := follower.Await(ctx, in.fed()); err != nil {
					t.Fatal(err)
				}
				a.close(t)
			}
			j.compare(t, in)
		})
	}
}
