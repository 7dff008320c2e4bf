package metadata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace-io/millrace/internal/topology"
)

// TopicProblem is what is wrong with a topic.
type TopicProblem string

// The problems of a [TopicError].
const (
	TopicMissing    TopicProblem = "missing"    // a topic that the application does not create does not exist
	TopicPartitions TopicProblem = "partitions" // an internal topic has another number of partitions than the topology needs
	TopicCleanup    TopicProblem = "cleanup"    // an internal topic's cleanup.policy loses state or grows for ever
	TopicCreate     TopicProblem = "create"     // an internal topic could not be created
	TopicUnreadable TopicProblem = "unreadable" // the broker refused to describe the topic
)

// TopicError says which topic keeps the application from starting, what is wrong with it and what to do.
type TopicError struct {
	Topic   string
	Problem TopicProblem
	Detail  string // what is wrong, in words
	Fix     string // what to do
	Err     error  // the broker's answer, if one caused it
}

// Error says all of it in one sentence.
func (e *TopicError) Error() string {
	return fmt.Sprintf("topic %q: %s; %s", e.Topic, e.Detail, e.Fix)
}

// Unwrap gives the broker's answer.
func (e *TopicError) Unwrap() error { return e.Err }

const cleanupPolicy = "cleanup.policy"

// settleTimeout bounds how long brokers may take to agree on a new topic when the caller's context has no deadline.
const settleTimeout = time.Minute

// CheckSources returns the partition count of every given topic, be it one to read or one to write. Each that does not exist, or that may not be read, is a
// [*TopicError] in the joined error; counts of the others are returned all the same. Nothing is created: topics of the
// user belong to the user.
func CheckSources(ctx context.Context, adm *kadm.Client, topics []string) (map[string]int32, error) {
	counts := map[string]int32{}
	if len(topics) == 0 {
		return counts, nil // asking for none would list all
	}
	details, err := listTopics(ctx, adm, topics)
	if err != nil {
		return nil, fmt.Errorf("describe the topics %s: %w", strings.Join(topics, ", "), err)
	}
	var problems []error
	for _, topic := range slices.Compact(slices.Sorted(slices.Values(topics))) {
		d, listed := details[topic]
		switch {
		case !listed || errors.Is(d.Err, kerr.UnknownTopicOrPartition):
			problems = append(problems, &TopicError{Topic: topic, Problem: TopicMissing, Err: d.Err,
				Detail: "the topic does not exist", Fix: "create it, or correct its name in the topology"})
		case d.Err != nil:
			problems = append(problems, unreadable(topic, d.Err))
		default:
			counts[topic] = int32(len(d.Partitions))
		}
	}
	return counts, errors.Join(problems...)
}

// EnsureTopics creates the internal topics that do not exist and checks those that do: the partition count must be the
// planned one and the cleanup policy must keep what the topic is for. It returns when the brokers agree that all exist.
//
// Several processes of an application may do this at the same moment: that another one was first is not an error. An
// existing topic is never altered, because its records are where their keys were hashed to. replication 0 leaves the
// factor to the broker (default.replication.factor). Problems are joined, each a [*TopicError].
func EnsureTopics(ctx context.Context, adm *kadm.Client, topics []topology.InternalTopic, replication int16) error {
	if len(topics) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	existing, err := describeInternal(ctx, adm, topics)
	if err != nil {
		return err
	}
	found, err := createMissing(ctx, adm, topics, existing, replication)
	if err != nil {
		return err
	}
	settled, err := settle(ctx, adm, topics)
	if err != nil {
		return err
	}
	var problems []error
	for _, t := range topics {
		problems = append(problems, checkPartitions(t, settled[t.Name]))
	}
	return errors.Join(append(problems, checkCleanup(ctx, adm, found))...)
}

// createMissing creates the topics that do not exist, side by side because each takes a broker some milliseconds, and
// returns those that were there already: their configs are somebody else's.
func createMissing(ctx context.Context, adm *kadm.Client, topics []topology.InternalTopic, existing kadm.TopicDetails, replication int16) (found []topology.InternalTopic, err error) {
	ours, problems := make([]bool, len(topics)), make([]error, len(topics))
	var creating sync.WaitGroup
	for i, t := range topics {
		if _, ok := existing[t.Name]; !ok {
			creating.Go(func() { ours[i], problems[i] = createTopic(ctx, adm, t, replication) })
		}
	}
	creating.Wait()
	for i, t := range topics {
		if !ours[i] {
			found = append(found, t)
		}
	}
	return found, errors.Join(problems...)
}

// listTopics asks a broker and not the client's cache, which may say for seconds that a topic is unknown that has just been
// created: kadm uses the cache unless authorized operations are wanted, which the cache does not hold.
func listTopics(ctx context.Context, adm *kadm.Client, topics []string) (kadm.TopicDetails, error) {
	return adm.ListTopicsWithInternal(kadm.WithAuthorizedOps(ctx), topics...)
}

// describeInternal returns the topics that exist.
func describeInternal(ctx context.Context, adm *kadm.Client, topics []topology.InternalTopic) (kadm.TopicDetails, error) {
	names := make([]string, 0, len(topics))
	for _, t := range topics {
		names = append(names, t.Name)
	}
	details, err := listTopics(ctx, adm, names)
	if err != nil {
		return nil, fmt.Errorf("describe the internal topics %s: %w", strings.Join(names, ", "), err)
	}
	for _, d := range details {
		switch {
		case errors.Is(d.Err, kerr.UnknownTopicOrPartition):
			delete(details, d.Topic)
		case d.Err != nil:
			return nil, unreadable(d.Topic, d.Err)
		}
	}
	return details, nil
}

// createTopic creates a topic; ours is false when somebody else was faster.
func createTopic(ctx context.Context, adm *kadm.Client, t topology.InternalTopic, replication int16) (ours bool, err error) {
	configs := map[string]*string{}
	for key, value := range t.Config {
		configs[key] = &value
	}
	created, err := adm.CreateTopics(ctx, t.Partitions, cmp.Or(replication, -1), configs, t.Name)
	if err != nil {
		return false, fmt.Errorf("create the internal topic %q: %w", t.Name, err)
	}
	answer, ok := created[t.Name]
	switch {
	case !ok:
		return false, fmt.Errorf("create the internal topic %q: the broker's answer does not name it", t.Name)
	case answer.Err == nil:
		return true, nil
	case errors.Is(answer.Err, kerr.TopicAlreadyExists):
		return false, nil
	}
	return false, &TopicError{Topic: t.Name, Problem: TopicCreate, Err: answer.Err, Fix: creationFix(t, answer.Err),
		Detail: fmt.Sprintf("this internal topic could not be created: %s", cmp.Or(answer.ErrMessage, answer.Err.Error()))}
}

// creationFix is what to do about a refusal.
func creationFix(t topology.InternalTopic, err error) string {
	switch {
	case errors.Is(err, kerr.InvalidReplicationFactor):
		return "set ReplicationFactor to at most the number of brokers"
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return "allow the application to create topics, or create it yourself: " + creation(t)
	default:
		return "create it yourself if the broker's policy does not allow it: " + creation(t)
	}
}

// creation says how an internal topic must be made.
func creation(t topology.InternalTopic) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d partitions", t.Partitions)
	for _, key := range slices.Sorted(maps.Keys(t.Config)) {
		fmt.Fprintf(&b, ", %s=%s", key, t.Config[key])
	}
	return b.String()
}

// settle waits until the brokers list every topic: a created topic reaches each broker's metadata a moment later, and a
// client that asks too early would take it for missing.
func settle(ctx context.Context, adm *kadm.Client, topics []topology.InternalTopic) (kadm.TopicDetails, error) {
	const firstWait, longestWait = 10 * time.Millisecond, 500 * time.Millisecond
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		details, err := describeInternal(ctx, adm, topics)
		if err != nil {
			return nil, err
		}
		missing := slices.IndexFunc(topics, func(t topology.InternalTopic) bool { return len(details[t.Name].Partitions) == 0 })
		if missing < 0 {
			return details, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, &TopicError{Topic: topics[missing].Name, Problem: TopicCreate, Err: context.Cause(ctx),
				Detail: "this internal topic was created, but the brokers do not list it", Fix: "look at the controller's log"}
		}
	}
}

func checkPartitions(t topology.InternalTopic, d kadm.TopicDetail) error {
	got := int32(len(d.Partitions))
	if got == t.Partitions {
		return nil
	}
	return &TopicError{Topic: t.Name, Problem: TopicPartitions,
		Detail: fmt.Sprintf("this internal topic has %d partitions where the topology needs %d", got, t.Partitions),
		Fix: "it is never resized, because its records would be in the wrong partitions: give the source topics their former partition counts, " +
			"or stop all instances, delete the internal topics and the state directories, and start again"}
}

// checkCleanup compares cleanup policies as sets. A changelog without compaction loses state, a compacted repartition topic
// loses records; other configs only cost space or time and are the operator's choice.
func checkCleanup(ctx context.Context, adm *kadm.Client, topics []topology.InternalTopic) error {
	planned := map[string]string{}
	for _, t := range topics {
		if policy := t.Config[cleanupPolicy]; policy != "" {
			planned[t.Name] = policy
		}
	}
	if len(planned) == 0 {
		return nil
	}
	answers, err := adm.DescribeTopicConfigs(ctx, slices.Sorted(maps.Keys(planned))...)
	if err != nil {
		return fmt.Errorf("read the configs of the internal topics: %w", err)
	}
	var problems []error
	for _, answer := range answers {
		if errors.Is(answer.Err, kerr.TopicAuthorizationFailed) {
			continue // reading configs needs a right of its own, which the application can do without
		}
		if answer.Err != nil {
			problems = append(problems, unreadable(answer.Name, answer.Err))
			continue
		}
		problems = append(problems, comparePolicies(answer, planned[answer.Name]))
	}
	return errors.Join(problems...)
}

func comparePolicies(answer kadm.ResourceConfig, planned string) error {
	for _, c := range answer.Configs {
		if c.Key == cleanupPolicy && c.Value != nil && !slices.Equal(policies(*c.Value), policies(planned)) {
			return &TopicError{Topic: answer.Name, Problem: TopicCleanup,
				Detail: fmt.Sprintf("this internal topic has cleanup.policy=%s where the topology needs %s", *c.Value, planned),
				Fix:    "alter the topic's config"}
		}
	}
	return nil
}

// policies splits "compact, delete" into its sorted parts.
func policies(list string) []string {
	parts := strings.Split(list, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}

func unreadable(topic string, err error) error {
	return &TopicError{Topic: topic, Problem: TopicUnreadable, Err: err,
		Detail: fmt.Sprintf("the broker does not describe this topic: %v", err), Fix: "check the name and the application's rights"}
}
