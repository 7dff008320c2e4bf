package cluster

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"
)

// TestListenerSaysThatOthersCanReachIt: the default is loopback and says nothing; any other address is told, with what
// it means.
func TestListenerSaysThatOthersCanReachIt(t *testing.T) {
	for address, warns := range map[string]bool{"": false, "127.0.0.1:0": false, "[::1]:0": false, "localhost:0": false, "0.0.0.0:0": true, ":0": true, "[::]:0": true} {
		t.Run(address, func(t *testing.T) {
			var out bytes.Buffer
			var opts []Option
			if address != "" {
				opts = append(opts, Listen(address))
			}
			cfg, err := newConfig(opts)
			if err != nil {
				t.Fatal(err)
			}
			l, err := listen(cfg, slog.New(slog.NewTextHandler(&out, nil)))
			if err != nil && strings.Contains(address, "::") {
				t.Skipf("no IPv6 here: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if warned := strings.Contains(out.String(), "other machines") && strings.Contains(out.String(), "no authentication"); warned != warns {
				t.Errorf("said %q", out.String())
			}
			if bound := l.tcp.Addr().(*net.TCPAddr).IP; bound.IsLoopback() == warns {
				t.Errorf("bound to %v", bound)
			}
			if host, _, err := net.SplitHostPort(l.addr.String()); err != nil || net.ParseIP(host).IsUnspecified() {
				t.Errorf("clients are told %v, %v", l.addr, err)
			}
		})
	}
}
