package thread

import (
	"context"
	"errors"
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
	for told := false; ; told = true {
		ctx, cancel := context.WithTimeout(t.ctx, t.cfg.CommitTimeout)
		err := request(ctx)
		cancel()
		switch {
		case err == nil:
			return nil
		case t.ctx.Err() != nil:
			return context.Cause(t.ctx)
		case !unanswered(err) && !kerr.IsRetriable(err):
			return err
		case !told:
			t.log.Warn("the brokers do not answer, trying again", "thread", t.name, "request", what, "err", err)
		}
		if err := pause(t.ctx, brokerRetry); err != nil {
			return err
		}
	}
}

// unanswered tells that a request failed on its way: it may have been carried out or not.
func unanswered(err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	return network || errors.Is(err, context.DeadlineExceeded) || kgo.IsRetryableBrokerErr(err)
}
