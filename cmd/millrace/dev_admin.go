package main

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/millrace-io/millrace/integration/cluster/admin"
)

// adminSide is the HTTP admin server of "dev"; the zero one serves nothing.
type adminSide struct {
	url    string
	server *http.Server
	failed chan error // gets at most one error, if serving ends by itself
}

// serveAdmin listens on the address, "" for none.
func serveAdmin(c *cluster.Cluster, address string) (*adminSide, error) {
	side := &adminSide{failed: make(chan error, 1)}
	if address == "" {
		return side, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("-admin: cannot listen on %s: %w (choose a free port, or 0 for any)", address, err)
	}
	side.url = "http://" + listener.Addr().String()
	side.server = &http.Server{Handler: admin.Handler(c), ReadHeaderTimeout: 10 * time.Second}
	go func() { // ends with side.close
		if err := side.server.Serve(listener); err != http.ErrServerClosed {
			side.failed <- fmt.Errorf("admin side: %w", err)
		}
	}()
	return side, nil
}

// close cuts requests off: a forced rebalance may take minutes, and goes on without its caller anyway.
func (a *adminSide) close() error {
	if a.server == nil {
		return nil
	}
	return a.server.Close()
}
