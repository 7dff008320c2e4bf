package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kerr"
)

// What Kafka's protocol has no request for: settings of a group, a forced rebalance, and everything that the coordinator
// knows of a group. Kafka does not have these; see coordinator.Settings.

// GroupError is the coordinator's refusal to do something to a group.
type GroupError struct {
	Group  string
	Err    *kerr.Error // as Kafka would name it; errors.Is finds it
	Reason string      // in words
}

func (e *GroupError) Error() string {
	return fmt.Sprintf("group %q: %s: %s", e.Group, e.Err.Message, e.Reason)
}

// Unwrap returns the Kafka error.
func (e *GroupError) Unwrap() error { return e.Err }

// MembershipChange is what a forced rebalance did.
type MembershipChange struct {
	Before, After int32    // generations
	Removed       []string // instance ids that did not rejoin, sorted
	Kept          []string // instance ids that did, sorted
}

// ForceRebalance makes a group of static members rebalance now, and removes those that do not rejoin within the deadline:
// exactly one generation passes. A deadline of 0, or one that is longer, is the members' rebalance timeout. It returns
// when the generation has begun. The error is a *[GroupError] if the coordinator refuses: REBALANCE_IN_PROGRESS,
// INVALID_REQUEST (the group has dynamic members), or GROUP_ID_NOT_FOUND (no such group, or no members). When ctx ends
// first, the rebalance goes on.
func (c *Cluster) ForceRebalance(ctx context.Context, group string, deadline time.Duration) (MembershipChange, error) {
	result := make(chan *coordinator.Forced, 1)
	event := coordinator.ForceRebalance{ID: c.groups.lastID.Add(1), Group: group, Deadline: deadline}
	if err := c.groups.ask(ctx, posted{event: event, forced: result}); err != nil {
		return MembershipChange{}, err
	}
	select {
	case forced := <-result:
		if forced.Err != nil {
			return MembershipChange{}, &GroupError{group, forced.Err, forced.Reason}
		}
		return MembershipChange{forced.Before, forced.After, forced.Removed, forced.Kept}, nil
	case <-ctx.Done():
		return MembershipChange{}, ctx.Err()
	case <-c.groups.done:
		return MembershipChange{}, errClosed
	}
}

// ConfigureGroup replaces the settings of a group, whether it exists yet or not; the zero Settings turn everything off. They
// are kept in the data directory. With removeNow, members that are no longer expected leave at once instead of when they
// are all offline.
func (c *Cluster) ConfigureGroup(ctx context.Context, group string, settings coordinator.Settings, removeNow bool) error {
	if group == "" {
		return errors.New("cluster: configure group: the group id is empty")
	}
	if err := settings.Validate(); err != nil {
		return fmt.Errorf("cluster: group %q: %w", group, err)
	}
	c.settings.mu.Lock()
	defer c.settings.mu.Unlock()
	if err := c.settings.store(group, settings); err != nil {
		return err
	}
	return c.groups.ask(ctx, posted{event: coordinator.Configure{Group: group, Settings: settings, RemoveNow: removeNow}})
}

// GroupSettings returns the settings of a group.
func (c *Cluster) GroupSettings(group string) coordinator.Settings {
	c.settings.mu.Lock()
	defer c.settings.mu.Unlock()
	return c.settings.groups[group].Settings
}

// Group returns everything that the coordinator knows of a group, and whether there is one.
func (c *Cluster) Group(ctx context.Context, group string) (coordinator.Group, bool, error) {
	var picture coordinator.Group
	var found bool
	err := c.groups.look(ctx, func(m *coordinator.Machine) { picture, found = m.Group(group) })
	return picture, found, err
}

// Groups returns the ids of all groups, sorted.
func (c *Cluster) Groups(ctx context.Context) ([]string, error) {
	var ids []string
	err := c.groups.look(ctx, func(m *coordinator.Machine) { ids = m.Groups() })
	return ids, err
}

var errClosed = fmt.Errorf("cluster: closed: %w", net.ErrClosed)

// ask hands something to the loop.
func (g *groups) ask(ctx context.Context, p posted) error {
	select {
	case g.events <- p:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-g.done:
		return errClosed
	}
}

// look lets fn read the machine in the loop, and returns when it has. fn must not keep the machine.
func (g *groups) look(ctx context.Context, fn func(*coordinator.Machine)) error {
	looked := make(chan struct{})
	if err := g.ask(ctx, posted{look: func(m *coordinator.Machine) { fn(m); close(looked) }}); err != nil {
		return err
	}
	select {
	case <-looked:
		return nil
	case <-g.done:
		return errClosed
	}
}
