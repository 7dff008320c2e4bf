package streams_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/streams"
)

// Promise P4: when the brokers refuse a record, the position behind what it was made of is never committed: a restart makes it again.
func TestNothingIsCommittedBeforeItIsAcknowledged(t *testing.T) {
	guarantees(t, func(t *testing.T, g streams.Guarantee) {
		f := newFixture(t)
		cfg := f.config("wc-0")
		cfg.Guarantee, cfg.CommitInterval = g, 50*time.Millisecond
		refuse := forger{kmsg.Produce: func(resp kmsg.Response) {
			time.Sleep(4 * cfg.CommitInterval) // brokers are slow: commits come due meanwhile
			for _, topic := range resp.(*kmsg.ProduceResponse).Topics {
				for i := range topic.Partitions {
					topic.Partitions[i].ErrorCode = kerr.MessageTooLarge.Code
				}
			}
		}}
		plain := cfg
		cfg.KafkaOptions = append(cfg.KafkaOptions, refuse.option())
		b, _ := f.wordCount()
		app := f.start(b, cfg)
		f.settled(8, app)
		f.produce(poem...)
		e := as(t, app.wait(), streams.KindProduce)
		if e.Topic != f.repartition() {
			t.Errorf("the error is about topic %q: %v", e.Topic, e)
		}
		committed, err := f.admin().FetchOffsets(t.Context(), f.app)
		if err != nil {
			t.Fatal(err)
		}
		committed.Each(func(o kadm.OffsetResponse) {
			if o.Topic == f.lines && o.At > 0 {
				t.Errorf("%s partition %d is committed up to %d", o.Topic, o.Partition, o.At)
			}
		})
		b, _ = f.wordCount()
		app = f.start(b, plain)
		if g == streams.ExactlyOnce { // at-least-once has counted some of it twice: the brokers did take the records
			f.countsUntil(poemCounts)
		}
		f.settled(8, app)
		app.end()
	})
}
