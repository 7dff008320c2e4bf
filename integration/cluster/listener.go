package cluster

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A listener stands in front of kfake: kfake gets it through kfake.ListenFn and accepts from it only connections that
// the listener hands over. Those are
//   - clients' connections, each behind a guard (see [guard]), once [listener.open] was called, and
//   - the cluster's own connections, which are in-memory pipes and pass unguarded (see [listener.dial]).
//
// kfake advertises the address of its listener, so Metadata and FindCoordinator name the front by themselves.
type listener struct {
	tcp    net.Listener
	addr   net.Addr // what clients are told
	router router
	logger *slog.Logger

	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
	wg       sync.WaitGroup // the accept loop

	mu     sync.Mutex
	guards map[*guard]struct{}

	trusted, collected budget // of all connections
	connections        int    // how many are let in

	refused atomic.Int64 // connections closed for what they sent, or because there were too many
}

// listen binds the address, so that an address in use is an error of Start, and lets clients wait in the backlog.
func listen(cfg config, logger *slog.Logger) (*listener, error) {
	tcp, err := net.Listen("tcp", cfg.listen)
	if err != nil {
		return nil, fmt.Errorf("cluster: cannot listen on %s: %w (choose a free port, or 0 for any)", cfg.listen, err)
	}
	addr, err := advertised(cfg, tcp.Addr())
	if err != nil {
		tcp.Close()
		return nil, err
	}
	if bound, ok := tcp.Addr().(*net.TCPAddr); ok && !bound.IP.IsLoopback() {
		logger.Warn("the cluster can be reached from other machines, and there is no authentication", "address", bound)
	}
	return &listener{
		tcp:      tcp,
		addr:     addr,
		logger:   logger,
		accepted: make(chan net.Conn),
		closed:   make(chan struct{}),
		guards:   map[*guard]struct{}{},

		trusted:     budget{limit: maxTrusted},
		collected:   budget{limit: maxHeld},
		connections: maxConnections,
	}, nil
}

// hostPort is an address that is only ever told, never dialled by us; a name in it stays a name.
type hostPort string

func (hostPort) Network() string  { return "tcp" }
func (a hostPort) String() string { return string(a) }

func advertised(cfg config, bound net.Addr) (net.Addr, error) {
	_, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return nil, fmt.Errorf("cluster: bound address %q: %w", bound, err)
	}
	if cfg.advertise == "" {
		host, _, _ := net.SplitHostPort(cfg.listen)
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		return hostPort(net.JoinHostPort(host, port)), nil
	}
	host, given, err := net.SplitHostPort(cfg.advertise)
	if err != nil {
		return nil, fmt.Errorf("cluster: advertised address %q: %w", cfg.advertise, err)
	}
	if given != "0" && given != "" {
		port = given
	}
	return hostPort(net.JoinHostPort(host, port)), nil
}

// open starts to accept clients. The router must be ready.
func (l *listener) open(r router) {
	l.router = r
	l.wg.Go(l.acceptLoop)
}

func (l *listener) acceptLoop() {
	for {
		nc, err := l.tcp.Accept()
		if err != nil {
			if l.stopped() {
				return
			}
			// Out of descriptors, or a client that went away between SYN and accept: neither ends the cluster.
			l.logger.Warn("accept failed", "error", err)
			if !l.pause(50 * time.Millisecond) {
				return
			}
			continue
		}
		if l.full() {
			l.refused.Add(1)
			l.logger.Warn("connection closed", "client", nc.RemoteAddr(), "reason", "there are too many", "limit", l.connections)
			nc.Close()
			continue
		}
		g := newGuard(l, nc)
		if !l.track(g) || !l.hand(g) {
			g.Close()
			return
		}
	}
}

func (l *listener) pause(d time.Duration) (goOn bool) {
	select {
	case <-time.After(d):
		return true
	case <-l.closed:
		return false
	}
}

// hand gives a connection to kfake's accept loop.
func (l *listener) hand(c net.Conn) bool {
	select {
	case l.accepted <- c:
		return true
	case <-l.closed:
		return false
	}
}

// dial opens a connection of the cluster to its own kfake. It has the shape of kgo's dialer.
func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	inner := innerConn{Conn: theirs, r: bufio.NewReaderSize(theirs, readBuffer)}
	select {
	case l.accepted <- inner:
		return ours, nil
	case <-l.closed:
	case <-ctx.Done():
	}
	ours.Close()
	theirs.Close()
	return nil, net.ErrClosed
}

// innerConn saves the two goroutine switches that reading length and body apart costs on a synchronous pipe.
type innerConn struct {
	net.Conn
	r *bufio.Reader
}

func (c innerConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// Accept is called by kfake.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Addr is what kfake advertises.
func (l *listener) Addr() net.Addr { return l.addr }

// Close stops both accept loops. Connections stay; see [listener.disconnect].
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.tcp.Close()
}

func (l *listener) stopped() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// full reports whether there is no room for another connection.
func (l *listener) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.guards) >= l.connections
}

func (l *listener) track(g *guard) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.guards == nil {
		return false
	}
	l.guards[g] = struct{}{}
	return true
}

func (l *listener) untrack(g *guard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.guards, g)
}

// disconnect stops accepting, cuts every client off and waits for the accept loop.
func (l *listener) disconnect() {
	l.Close()
	l.mu.Lock()
	guards := l.guards
	l.guards = nil
	l.mu.Unlock()
	for g := range guards {
		g.Close()
	}
	l.wg.Wait()
}
