//go:build unix

package cluster_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// These benchmarks measure a cluster in a process of its own with one processor (GOMAXPROCS=1), so that its processor
// time is known apart from its clients'. They report requests per second of that time, which says something on a machine
// that has other things to do, and how long an answer took, which says something only on one that has not.

// A benchServer is that process.
type benchServer struct {
	addr string
	in   io.WriteCloser
	out  *bufio.Scanner
}

func startBenchServer(b *testing.B) *benchServer {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), serveEnv+"="+b.TempDir()), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	s := &benchServer{in: in, out: bufio.NewScanner(out)}
	s.addr = s.line(b)
	return s
}

func (s *benchServer) line(b *testing.B) string {
	b.Helper()
	if !s.out.Scan() {
		b.Fatal("the server ended: ", s.out.Err())
	}
	return s.out.Text()
}

// cpu is the processor time that the server has used.
func (s *benchServer) cpu(b *testing.B) time.Duration {
	b.Helper()
	if _, err := fmt.Fprintln(s.in); err != nil {
		b.Fatal(err)
	}
	n, err := strconv.ParseInt(s.line(b), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(n)
}

// A benchMember is a static member with a connection of its own.
type benchMember struct {
	net.Conn
	r        *bufio.Reader
	id       string
	instance string
	buf      []byte
}

// exchange sends an encoded request and reads the response, without its length and correlation id.
func (m *benchMember) exchange(raw []byte) ([]byte, error) {
	if _, err := m.Write(raw); err != nil {
		return nil, err
	}
	return m.receive()
}

func (m *benchMember) receive() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(m.r, size[:]); err != nil {
		return nil, err
	}
	m.buf = slices.Grow(m.buf[:0], int(binary.BigEndian.Uint32(size[:])))[:binary.BigEndian.Uint32(size[:])]
	_, err := io.ReadFull(m.r, m.buf)
	return m.buf[4:], err
}

func encodeBench(req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, req, 1)
}

const (
	benchMembers = 1000
	benchGroup   = "bench"
	inFlight     = 16 // requests that wait for an answer at a time
)

// joinBench makes a group of static members.
func joinBench(b *testing.B, addr string) (members []*benchMember, generation int32) {
	b.Helper()
	join := func(m *benchMember) []byte {
		req := kmsg.NewPtrJoinGroupRequest()
		req.Version, req.Group, req.InstanceID, req.ProtocolType = 5, benchGroup, &m.instance, "consumer"
		req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 300_000, 60_000
		req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: make([]byte, 100)}}
		return encodeBench(req)
	}
	for i := range benchMembers {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { nc.Close() })
		m := &benchMember{Conn: nc, r: bufio.NewReader(nc), instance: fmt.Sprintf("member-%04d", i)}
		if _, err := nc.Write(join(m)); err != nil {
			b.Fatal(err)
		}
		members = append(members, m)
	}
	leader := ""
	for _, m := range members {
		resp := kmsg.NewPtrJoinGroupResponse()
		resp.Version = 5
		body, err := m.receive()
		if err != nil {
			b.Fatal(err)
		}
		if err := resp.ReadFrom(body); err != nil || resp.ErrorCode != 0 {
			b.Fatal(err, resp.ErrorCode)
		}
		m.id, generation, leader = resp.MemberID, resp.Generation, resp.LeaderID
	}
	syncBench(b, members, generation, leader)
	return members, generation
}

func syncBench(b *testing.B, members []*benchMember, generation int32, leader string) {
	b.Helper()
	for _, m := range members {
		req := kmsg.NewPtrSyncGroupRequest()
		req.Version, req.Group, req.InstanceID, req.MemberID, req.Generation = 3, benchGroup, &m.instance, m.id, generation
		if m.id == leader {
			for _, other := range members {
				req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: other.id, MemberAssignment: make([]byte, 100)})
			}
		}
		if _, err := m.Write(encodeBench(req)); err != nil {
			b.Fatal(err)
		}
	}
	for _, m := range members {
		resp := kmsg.NewPtrSyncGroupResponse()
		resp.Version = 3
		body, err := m.receive()
		if err != nil {
			b.Fatal(err)
		}
		if err := resp.ReadFrom(body); err != nil || resp.ErrorCode != 0 {
			b.Fatal(err, resp.ErrorCode)
		}
	}
}

// measureRequests has every member send its request again and again, inFlight of them at a time, b.N in all. failed says
// whether an answer is an error.
func measureRequests(b *testing.B, s *benchServer, members []*benchMember, request func(*benchMember) []byte, failed func(body []byte) bool) {
	b.Helper()
	requests := make([][]byte, len(members))
	for i, m := range members {
		requests[i] = request(m)
	}
	took := make([][]time.Duration, inFlight)
	var wg sync.WaitGroup
	before := s.cpu(b)
	b.ResetTimer()
	for w := range inFlight {
		wg.Go(func() {
			for i := w; i < b.N; i += inFlight {
				at := i % (len(members) / inFlight * inFlight) // worker w has the members w, w+16, …: none sends two at a time
				start := time.Now()
				body, err := members[at].exchange(requests[at])
				if err != nil || failed(body) {
					b.Errorf("member %d: % x, %v", at, body, err)
					return
				}
				took[w] = append(took[w], time.Since(start))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	used := s.cpu(b) - before
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	b.ReportMetric(float64(b.N)/used.Seconds(), "req/cpu-s")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	b.ReportMetric(100*used.Seconds()/b.Elapsed().Seconds(), "server-cpu-%")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
}

func heartbeat(generation int32) func(m *benchMember) []byte {
	return func(m *benchMember) []byte {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Version, req.Group, req.InstanceID, req.MemberID, req.Generation = 3, benchGroup, &m.instance, m.id, generation
		return encodeBench(req)
	}
}

func heartbeatFailed(body []byte) bool { return binary.BigEndian.Uint16(body[4:]) != 0 }

// BenchmarkHeartbeats is what the members of a group do most: 1,000 static members, each on a connection of its own.
// While records are produced and fetched the processor time is that of both.
func BenchmarkHeartbeats(b *testing.B) {
	b.Run("quiet", func(b *testing.B) {
		s := startBenchServer(b)
		members, generation := joinBench(b, s.addr)
		measureRequests(b, s, members, heartbeat(generation), heartbeatFailed)
	})
	b.Run("while records flow", func(b *testing.B) {
		s := startBenchServer(b)
		members, generation := joinBench(b, s.addr)
		stop := produceAndFetch(b, s.addr)
		measureRequests(b, s, members, heartbeat(generation), heartbeatFailed)
		b.ReportMetric(stop()/b.Elapsed().Seconds(), "records/s")
	})
}

// BenchmarkOffsetCommits has the members commit one offset each time.
func BenchmarkOffsetCommits(b *testing.B) {
	s := startBenchServer(b)
	members, generation := joinBench(b, s.addr)
	measureRequests(b, s, members, func(m *benchMember) []byte {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Version, req.Group, req.InstanceID, req.MemberID, req.Generation = 7, benchGroup, &m.instance, m.id, generation
		at, _ := strconv.Atoi(strings.TrimPrefix(m.instance, "member-"))
		rp := kmsg.OffsetCommitRequestTopicPartition{Partition: int32(at % 4), Offset: int64(at), LeaderEpoch: -1}
		req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "bench", Partitions: []kmsg.OffsetCommitRequestTopicPartition{rp}}}
		return encodeBench(req)
	}, func(body []byte) bool { return binary.BigEndian.Uint16(body[len(body)-2:]) != 0 })
}

// produceAndFetch produces 20,000 records of 100 bytes a second and fetches them. stop returns how many were fetched.
func produceAndFetch(b *testing.B, addr string) (stop func() (fetched float64)) {
	b.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics("bench"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		ticks := time.NewTicker(10 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
			case <-ctx.Done():
				return
			}
			for range 200 {
				cl.Produce(ctx, &kgo.Record{Topic: "bench", Value: make([]byte, benchValue)}, nil)
			}
		}
	})
	n := 0
	wg.Go(func() {
		for ctx.Err() == nil {
			n += cl.PollFetches(ctx).NumRecords()
		}
	})
	return func() float64 {
		cancel()
		wg.Wait()
		cl.Close()
		return float64(n)
	}
}
