package thread

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// brokerRetry is the pause before brokers that did not answer are asked again.
const brokerRetry = 250 * time.Millisecond

// patiently makes a request until it is answered: brokers that restart must not end an application. It waits as long as the
// thread may live; the watchdog of progress is what bounds it.
func (t *Thread) patiently(what string, request func(context.Context) error) error {
	return outlast(t.ctx, t.log.With("thread", t.name), what, func() error {
		ctx, cancel := context.WithTimeout(t.ctx, t.cfg.CommitTimeout)
		defer cancel()
		return request(ctx)
	})
}

// outlast repeats what failed because the brokers did not answer, until ctx ends.
func outlast(ctx context.Context, log *slog.Logger, what string, try func() error) error {
	for told := false; ; told = true {
		err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !unanswered(err) && !unavailable(err):
			return err
		case !told:
			log.Warn("the brokers do not answer, trying again", "request", what, "err", err)
		}
		if err := pause(ctx, brokerRetry); err != nil {
			return err
		}
	}
}

// unanswered tells that a request failed on its way: it may have been carried out or not.
func unanswered(err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	return network || errors.Is(err, context.DeadlineExceeded) || kgo.IsRetryableBrokerErr(err)
}

// unavailable tells that a broker has answered that it, or another one that is needed, cannot serve the request now.
func unavailable(err error) bool {
	e, answered := errors.AsType[*kerr.Error](err)
	return answered && e.Retriable && !missing(err)
}
