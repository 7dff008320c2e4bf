package streams

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/metadata"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/statestore/pebblestore"
	"github.com/millrace-io/millrace/thread"
)

// process is everything that a running application has. open builds it up from the bottom, close takes it down.
type process struct {
	app      *App
	dir      *statestore.Dir
	stores   *pebblestore.Shared
	admin    *kgo.Client
	restorer *thread.Restorer
	slots    atomic.Pointer[[]slot] // written by the supervisor, read anywhere
	identity metadata.Process
	group    *metadata.Cache
	registry *prometheus.Registry
	server   *http.Server
	serving  chan error    // why the server ended
	changed  chan struct{} // holds a token after a thread changed its state

	clusterID string
	layout    atomic.Pointer[thread.Layout]
	looking   sync.Mutex  // held while somebody looks at the topics
	broken    chan *Error // what the watch over the topics found, or a store that is lost
	abandoned bool        // threads are still running
}

// open starts everything but the threads. After an error nothing is left open.
func (a *App) open(ctx context.Context) (*process, error) {
	p := &process{app: a, serving: make(chan error, 1), changed: make(chan struct{}, 1), broken: make(chan *Error, 1)}
	p.slots.Store(new([]slot))
	ctx, cancel := context.WithTimeout(ctx, a.cfg.StartTimeout)
	defer cancel()
	for _, step := range []func(context.Context) error{p.openDir, p.connect, p.checkTopics, p.listen, p.removeSurplus, p.makeThreads} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

// openDir locks the state directory, before anything is said to the group: a second start on the same disk by mistake must not
// fence the first.
func (p *process) openDir(context.Context) (err error) {
	if p.dir, err = statestore.LockDir(p.app.cfg.StateDir, p.app.cfg.AppID); err != nil {
		return failure(KindState, err)
	}
	id, err := p.dir.ProcessID()
	if err != nil {
		return failure(KindState, err)
	}
	p.identity = metadata.Process{
		ApplicationID: p.app.cfg.AppID, Group: p.app.cfg.AppID, ClientID: p.clientID(id), ProcessID: id,
	}
	return nil
}

// clientID is the client id of the process: the configured one, or for dynamic members one of the process id.
func (p *process) clientID(processID string) string {
	if p.app.cfg.ClientID != "" {
		return p.app.cfg.ClientID
	}
	return p.app.cfg.AppID + "-" + processID
}

// clientOptions reach the brokers. The user's own come first, so that ours win.
func (c *Config) clientOptions() []kgo.Opt {
	opts := append([]kgo.Opt{}, c.KafkaOptions...)
	opts = append(opts, kgo.SeedBrokers(c.Brokers...))
	if c.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(c.TLS))
	}
	if c.SASL != nil {
		opts = append(opts, kgo.SASL(c.SASL))
	}
	return opts
}

// connect waits for the brokers, within the start time-out, and reads the cluster's id.
func (p *process) connect(ctx context.Context) error {
	client, err := kgo.NewClient(append(p.app.cfg.clientOptions(), kgo.ClientID(p.identity.ClientID+"-admin"))...)
	if err != nil {
		return failure(KindConfig, fmt.Errorf("Kafka client: %w", err))
	}
	p.admin = client
	adm := kadm.NewClient(client)
	var last error
	for {
		meta, err := adm.BrokerMetadata(ctx)
		if err == nil {
			p.clusterID = meta.Cluster
			if err := p.dir.CheckCluster(meta.Cluster); err != nil {
				return failure(KindState, err)
			}
			p.group = metadata.NewCache(func(ctx context.Context) (metadata.Snapshot, error) {
				return metadata.Describe(ctx, adm, p.app.cfg.AppID, p.app.plan)
			}, 0, time.Now)
			return nil
		}
		if refused(err) {
			return failure(KindBroker, fmt.Errorf("the brokers at %s and this process do not accept each other: %w", strings.Join(p.app.cfg.Brokers, ", "), err))
		}
		if ctx.Err() == nil {
			if last == nil {
				p.app.cfg.Logger.Warn("no broker answers, trying again", "brokers", p.app.cfg.Brokers, "for", p.app.cfg.StartTimeout, "err", err)
			}
			last = err
		}
		select {
		case <-time.After(connectRetry):
		case <-ctx.Done():
			return failure(KindBroker, fmt.Errorf("no broker answered at %s within %v: %w",
				strings.Join(p.app.cfg.Brokers, ", "), p.app.cfg.StartTimeout, errors.Join(context.Cause(ctx), last)))
		}
	}
}

// connectRetry is the pause between two attempts to reach a broker at the start.
const connectRetry = 250 * time.Millisecond

// listen opens the REST side.
func (p *process) listen(context.Context) error {
	p.identity.Host = p.app.cfg.AdvertisedEndpoint
	p.registry = newRegistry(p)
	addr := p.app.cfg.RESTAddr
	if addr == "" {
		return nil
	}
	if strings.HasPrefix(addr, ":") {
		addr = "127.0.0.1" + addr
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return failure(KindConfig, fmt.Errorf("streams.Config.RESTAddr: %w", err))
	}
	if p.identity.Host == "" {
		p.identity.Host = listener.Addr().String()
	}
	p.server = &http.Server{Handler: p.app.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.serving <- fmt.Errorf("REST side at %s: %w", listener.Addr(), err)
		}
	}()
	p.app.cfg.Logger.Info("REST side listens", "url", "http://"+listener.Addr().String())
	return nil
}

// close takes down what open built, in reverse. Threads have ended, unless they were abandoned: then what they use stays open,
// for a process that ends releases it anyway.
func (p *process) close() error {
	if p.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), serverStop)
		defer cancel()
		if err := p.server.Shutdown(ctx); err != nil {
			p.server.Close()
		}
	}
	if p.abandoned {
		return nil
	}
	if p.restorer != nil {
		p.restorer.Close()
	}
	if p.stores != nil {
		p.stores.Close()
	}
	if p.admin != nil {
		p.admin.Close()
	}
	if p.dir == nil {
		return nil
	}
	if err := p.dir.Unlock(); err != nil {
		return failure(KindState, err)
	}
	return nil
}

// serverStop is how long requests may take to end when the application stops.
const serverStop = 2 * time.Second
