package streamstest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/streams"
)

// DefaultAppID is the application id that a driver uses unless told otherwise; names of internal topics begin with it.
const DefaultAppID = "app"

// Option adjusts a [Driver].
type Option func(*options)

type options struct {
	appID               string
	now                 time.Time
	onDecode, onProcess streams.Handler
}

// AppID sets the application id.
func AppID(id string) Option { return func(o *options) { o.appID = id } }

// StartAt sets the virtual time at which the driver begins.
func StartAt(t time.Time) Option { return func(o *options) { o.now = t } }

// OnDecodeError decides about records that a serde cannot decode, as the field of streams.Config does. Without it Pipe fails.
func OnDecodeError(h streams.Handler) Option { return func(o *options) { o.onDecode = h } }

// OnProcessError decides about records at which a user function failed, as the field of streams.Config does. Without it
// Pipe fails.
func OnProcessError(h streams.Handler) Option { return func(o *options) { o.onProcess = h } }

// Driver runs one topology. It belongs to one goroutine.
type Driver struct {
	plan    *topology.Plan
	now     time.Time
	units   []*unit
	readers map[string][]reader // who reads a topic
	topics  map[string][]Raw    // all that was piped into or written to a topic
	pending []*unit             // units with queued records, in the order in which they got them
	err     error               // the first failure: the application would have stopped
}

// reader is an input of a task.
type reader struct {
	unit  *unit
	input int
}

// New builds the topology and its tasks. Mistakes in the topology are joined in the error, as streams.New would report them.
func New(b *streams.Builder, opts ...Option) (*Driver, error) {
	all := options{appID: DefaultAppID, now: time.UnixMilli(0).UTC()}
	for _, o := range opts {
		o(&all)
	}
	plan, err := b.Build(all.appID)
	if err != nil {
		return nil, err
	}
	d := &Driver{plan: plan, now: all.now, readers: map[string][]reader{}, topics: map[string][]Raw{}}
	for i := range plan.Subtopologies {
		u, err := d.newUnit(&plan.Subtopologies[i], all)
		if err != nil {
			return nil, err
		}
		d.units = append(d.units, u)
		for _, source := range plan.Subtopologies[i].Sources {
			input, ok := u.task.Input(source.Topic)
			if !ok {
				return nil, fmt.Errorf("task %v has no input for its source topic %q", u.task.ID(), source.Topic)
			}
			d.readers[source.Topic] = append(d.readers[source.Topic], reader{u, input})
		}
	}
	return d, nil
}

// Now is the virtual time.
func (d *Driver) Now() time.Time { return d.now }

// Advance moves the virtual time forward.
func (d *Driver) Advance(by time.Duration) { d.now = d.now.Add(by) }

// Err is the error that stopped the topology, nil while it runs.
func (d *Driver) Err() error { return d.err }

// PipeRaw processes one record of bytes to its end: through all repartition topics, and committed. An error of the topology
// stops it, as it would stop the application: it is a *streams.Error, what the failed record did is undone, and later calls
// return the same error.
func (d *Driver) PipeRaw(topic string, r Raw) error {
	if d.err != nil {
		return fmt.Errorf("the topology has stopped: %w", d.err)
	}
	if len(d.readers[topic]) == 0 {
		return fmt.Errorf("topic %q is no source of the topology; its sources are %s", topic, strings.Join(d.sources(), ", "))
	}
	d.write(topic, r)
	d.err = streams.ErrorFromTask(d.drain())
	return d.err
}

// sources lists the topics that are read, repartition topics included.
func (d *Driver) sources() []string {
	var topics []string
	for topic := range d.readers {
		topics = append(topics, topic)
	}
	slices.Sort(topics)
	return topics
}

// write appends a record to a topic and to the queues of those that read it.
func (d *Driver) write(topic string, r Raw) {
	offset := int64(len(d.topics[topic]))
	d.topics[topic] = append(d.topics[topic], r)
	for _, reader := range d.readers[topic] {
		reader.unit.task.EnqueueAt(reader.input, []topology.Record{source(r, offset)})
		d.pending = append(d.pending, reader.unit)
	}
}

// drain processes and commits record by record until all queues are empty. What a record writes to a repartition topic
// is appended to the queues meanwhile.
func (d *Driver) drain() error {
	for len(d.pending) > 0 {
		next := d.pending[0]
		d.pending = d.pending[1:]
		if err := next.step(d); err != nil {
			return err
		}
	}
	return nil
}

// Written returns all records of a topic so far: what was piped into it, or what the topology wrote to it. Internal topics
// go by their full names, such as "app-word-counts-changelog". The slice must not be changed.
func (d *Driver) Written(topic string) []Raw { return d.topics[topic] }

// Dropped counts the records, or parts of records, that operators left out, by reason. Reasons without drops are absent.
func (d *Driver) Dropped() map[string]int64 {
	counts := map[string]int64{}
	for _, u := range d.units {
		for reason, n := range u.task.Stats().Drops {
			if n > 0 {
				counts[topology.DropReason(reason).String()] += n
			}
		}
	}
	return counts
}

// Describe returns the topology in Kafka's text form.
func (d *Driver) Describe() string { return d.plan.Describe() }

// StoreNames lists the state stores, sorted.
func (d *Driver) StoreNames() []string {
	var names []string
	for _, sub := range d.plan.Subtopologies {
		for _, store := range sub.Stores {
			names = append(names, store.Name)
		}
	}
	slices.Sort(names)
	return names
}

// InternalTopic is a repartition or changelog topic that the application would create.
type InternalTopic = topology.InternalTopic

// InternalTopics returns the topics that the application would create, with Kafka Streams' configs.
func (d *Driver) InternalTopics() ([]InternalTopic, error) {
	return d.plan.InternalTopics(func(string) (int32, bool) { return 1, true })
}
