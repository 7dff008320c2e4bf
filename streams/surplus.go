package streams

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/millrace-io/millrace/membership"
	"github.com/millrace-io/millrace/metadata"
)

// removeSurplus removes the static members that threads of this process left behind when it had more of them, in one batch.
func (p *process) removeSurplus(ctx context.Context) error {
	cfg := &p.app.cfg
	if !cfg.RemoveSurplus || !cfg.static() {
		return nil
	}
	adm := kadm.NewClient(p.admin)
	present, err := metadata.StaticInstances(ctx, adm, cfg.AppID)
	if err != nil {
		return failure(KindBroker, fmt.Errorf("streams.Config.RemoveSurplus: %w", err))
	}
	var surplus []string
	for id := range present {
		if n, ok := membership.ThreadOf(cfg.ClientID, id); ok && n > cfg.Threads {
			surplus = append(surplus, id)
		}
	}
	slices.Sort(surplus)
	removals, err := metadata.RemoveInstances(ctx, p.admin, cfg.AppID, fmt.Sprintf("%s runs %d threads now", cfg.ClientID, cfg.Threads), surplus)
	if err != nil {
		return failure(KindBroker, fmt.Errorf("streams.Config.RemoveSurplus: %w", err))
	}
	for _, r := range removals {
		if r.Err != nil {
			return failure(KindBroker, fmt.Errorf("streams.Config.RemoveSurplus: removing %s: %w", r.InstanceID, r.Err))
		}
	}
	if len(surplus) > 0 {
		cfg.Logger.Info("removed the instances of threads that this process does not have any more", "app", cfg.AppID, "instances", surplus)
	}
	return nil
}
