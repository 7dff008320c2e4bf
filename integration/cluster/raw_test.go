package cluster_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A rawConn speaks frames of the test's own making.
type rawConn struct{ net.Conn }

func dialRaw(t testing.TB, c *cluster.Cluster) rawConn {
	t.Helper()
	nc, err := net.Dial("tcp", c.Brokers()[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return rawConn{nc}
}

// send writes a request and does not wait for its answer.
func (c rawConn) send(t testing.TB, corr int32, req kmsg.Request) {
	t.Helper()
	raw := kmsg.NewRequestFormatter(kmsg.FormatterClientID("raw")).AppendRequest(nil, req, corr)
	if _, err := c.Write(raw); err != nil {
		t.Fatal(err)
	}
}

// response reads one response frame without its length.
func (c rawConn) response(t testing.TB) []byte {
	t.Helper()
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c, body); err != nil {
		t.Fatal(err)
	}
	return body
}

// correlation reads one response and returns whose it is.
func (c rawConn) correlation(t testing.TB) int32 {
	t.Helper()
	return int32(binary.BigEndian.Uint32(c.response(t)))
}

// closedByPeer waits for the other side to close.
func (c rawConn) closedByPeer(t testing.TB) {
	t.Helper()
	n, err := c.Read(make([]byte, 1))
	if n > 0 || err == nil {
		t.Fatal("the connection answered instead of being closed")
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		t.Fatal("the connection was not closed")
	}
}

// goroutines returns the stacks of everything that runs, one string each.
func goroutines() map[string]bool {
	buf := make([]byte, 4<<20)
	stacks := map[string]bool{}
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		id, _, _ := strings.Cut(g, " [")
		stacks[id] = true
	}
	return stacks
}

// leaked returns the stacks of goroutines of the cluster that did not run before.
func leaked(before map[string]bool) string {
	buf := make([]byte, 4<<20)
	var left []string
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		id, _, _ := strings.Cut(g, " [")
		if !before[id] && (strings.Contains(g, "integration/cluster.") || strings.Contains(g, "kfake.")) {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}

func TestGarbageEndsOnlyItsConnection(t *testing.T) {
	c := start(t, cluster.Topic("lines", 1))
	cl := client(t, c)
	header := func(size int32, key, version int16, rest ...byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(size))
		b = binary.BigEndian.AppendUint16(b, uint16(key))
		b = binary.BigEndian.AppendUint16(b, uint16(version))
		return append(b, rest...)
	}
	cases := map[string][]byte{
		"http":                   []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"negative length":        header(-1, 3, 1, 0, 0, 0, 0),
		"zero length":            header(0, 3, 1, 0, 0, 0, 0),
		"length beyond the max":  header(100<<20+1, 3, 1, 0, 0, 0, 0),
		"length of 2 GiB":        header(1<<31-1, 3, 1, 0, 0, 0, 0),
		"unknown key":            header(8, 999, 0, 0, 0, 0, 0),
		"negative key":           header(8, -7, 0, 0, 0, 0, 0),
		"hidden key":             header(8, 68, 0, 0, 0, 0, 0),
		"version too high":       header(8, 3, 99, 0, 0, 0, 0),
		"negative version":       header(8, 3, -2, 0, 0, 0, 0),
		"group body cut":         header(10, 11, 5, 0, 0, 0, 0, 0xff, 0xff),
		"client id longer":       header(10, 12, 0, 0, 0, 0, 0, 0x7f, 0xff),
		"kfake's body cut":       header(10, 3, 1, 0, 0, 0, 0, 0xff, 0xff),
		"produce without acks":   header(10, 0, 3, 0, 0, 0, 0, 0xff, 0xff),
		"api versions, body cut": header(10, 18, 3, 0, 0, 0, 0, 0xff, 0xff),
	}
	for name, raw := range cases {
		t.Run(name, func(t *testing.T) {
			conn := dialRaw(t, c)
			if _, err := conn.Write(raw); err != nil {
				t.Fatal(err)
			}
			conn.closedByPeer(t)
			produce(t, cl, "lines", "v", 1) // the cluster is well
		})
	}
	if c.Refused() == 0 {
		t.Error("no refused connection was counted")
	}
}

// TestLyingLengthCostsNothing: frames that announce much and send nothing must not reserve what they announce.
func TestLyingLengthCostsNothing(t *testing.T) {
	c := start(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const liars = 64
	for range liars {
		conn := dialRaw(t, c)
		raw := binary.BigEndian.AppendUint32(nil, 100<<20)
		raw = append(raw, 0, 3, 0, 1, 0, 0, 0, 0, 0xff, 0xff)
		if _, err := conn.Write(raw); err != nil {
			t.Fatal(err)
		}
	}
	probe := dialRaw(t, c)
	probe.send(t, 1, kmsg.NewPtrMetadataRequest())
	probe.correlation(t) // connections are accepted in order, so the liars have been read by now
	runtime.ReadMemStats(&after)
	if got := int64(after.HeapSys) - int64(before.HeapSys); got > liars*8<<20 {
		t.Fatalf("%d lying frames took %d MiB", liars, got>>20)
	}
}

func TestAPIVersions(t *testing.T) {
	c := start(t)
	conn := dialRaw(t, c)
	newer := kmsg.NewPtrApiVersionsRequest()
	newer.ClientSoftwareName, newer.ClientSoftwareVersion = "test", "1"
	newer.Version = 4
	raw := kmsg.NewRequestFormatter(kmsg.FormatterClientID("raw")).AppendRequest(nil, newer, 1)
	binary.BigEndian.PutUint16(raw[6:], 77) // a version of the future, whose body nobody here can know
	if _, err := conn.Write(raw); err != nil {
		t.Fatal(err)
	}
	refused := kmsg.NewPtrApiVersionsResponse()
	if err := refused.ReadFrom(conn.response(t)[4:]); err != nil {
		t.Fatal(err)
	}
	if refused.ErrorCode != 35 || len(refused.ApiKeys) != 1 || refused.ApiKeys[0].ApiKey != 18 {
		t.Fatalf("answer to a version of the future: %+v", refused)
	}
	conn.send(t, 2, newer)
	served := kmsg.NewPtrApiVersionsResponse()
	served.Version = 4
	if err := served.ReadFrom(conn.response(t)[4:]); err != nil {
		t.Fatal(err)
	}
	max := map[int16]int16{}
	for _, k := range served.ApiKeys {
		max[k.ApiKey] = k.MaxVersion
	}
	for _, hidden := range []int16{48, 49, 50, 51, 68, 69, 71, 72, 75, 76, 77, 78, 79, 88, 89, 90, 91, 92} {
		if v, ok := max[hidden]; ok {
			t.Errorf("key %d is advertised up to %d", hidden, v)
		}
	}
	for key, want := range map[int16]int16{0: 12, 11: 9, 12: 4, 14: 5, 19: 4, 28: 6} {
		if max[key] != want {
			t.Errorf("key %d is advertised up to %d, want %d", key, max[key], want)
		}
	}
	if len(served.FinalizedFeatures) == 0 {
		t.Error("no finalized features: clients would not use transaction version 2")
	}
}
