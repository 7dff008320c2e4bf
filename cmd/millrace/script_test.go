package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/millrace-io/millrace/integration/cluster/admin"
	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/membership/codec"
	"github.com/millrace-io/millrace/metadata"
	"github.com/millrace-io/millrace/metadata/rest"
)

// TestMain makes this binary the command "millrace" of the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"millrace": main})
}

// TestScripts runs testdata/*.txt. Each script has an embedded cluster at $BROKERS and $ADMIN, the REST side of an application at $URL,
// and the command "join group instance…", which makes static members that each own one task; one whose name begins with dynamic has
// no instance id. "secured" starts brokers that ask for TLS and a login.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			c, err := cluster.Start(cluster.InitialRebalanceDelay(200 * time.Millisecond))
			if err != nil {
				return err
			}
			env.Defer(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
			app := httptest.NewServer(rest.Handler(oneThread{}))
			env.Defer(app.Close)
			env.Setenv("BROKERS", strings.Join(c.Brokers(), ","))
			env.Setenv("URL", app.URL)
			operator := httptest.NewServer(admin.Handler(c))
			env.Defer(operator.Close)
			env.Setenv("ADMIN", operator.URL)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"join": join, "secured": secure},
	})
}

// join makes args[1:] the members of group args[0]: all in one generation, owned by one process.
func join(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: join group instance…")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	failures := make([]error, len(args)-1)
	var done sync.WaitGroup
	for i, instance := range args[1:] {
		done.Go(func() {
			failures[i] = joinOne(ctx, args[0], instance, len(args)-1, kgo.SeedBrokers(ts.Getenv("BROKERS")))
		})
	}
	done.Wait()
	ts.Check(errors.Join(failures...))
}

// joinOne joins and syncs until the group has the wanted number of members. The member then falls silent, as a stopped
// process does; its session lasts longer than a script.
func joinOne(ctx context.Context, group, instance string, want int, opts ...kgo.Opt) error {
	client, err := kgo.NewClient(append(opts, kgo.ClientID(instance))...)
	if err != nil {
		return err
	}
	defer client.Close()
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group = group
	if !strings.HasPrefix(instance, "dynamic") {
		request.InstanceID = &instance
	}
	request.ProtocolType, request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = codec.ProtocolType, 120_000, 10_000
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = codec.ProtocolName
	protocol.Metadata = codec.EncodeMember([]string{"lines"}, nil, &codec.Subscription{
		ProcessID: "p0", ClientID: "wc-0", Endpoint: "host0:8080", Generation: codec.NoGeneration})
	request.Protocols = append(request.Protocols, protocol)
	for {
		joined, err := request.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		request.MemberID = joined.MemberID
		switch err := kerr.ErrorForCode(joined.ErrorCode); {
		case errors.Is(err, kerr.MemberIDRequired):
			continue
		case err != nil:
			return fmt.Errorf("join %s: %w", instance, err)
		}
		if joined.LeaderID == joined.MemberID && len(joined.Members) < want {
			continue // the others were not quick enough; a leader that joins again begins another generation
		}
		switch err := syncOne(ctx, client, request, joined); {
		case errors.Is(err, kerr.RebalanceInProgress):
		case err != nil:
			return fmt.Errorf("sync %s: %w", instance, err)
		default:
			return nil
		}
	}
}

// syncOne gives, as the leader, each member a task.
func syncOne(ctx context.Context, client *kgo.Client, join *kmsg.JoinGroupRequest, joined *kmsg.JoinGroupResponse) error {
	request := kmsg.NewPtrSyncGroupRequest()
	request.Group, request.MemberID, request.InstanceID, request.Generation = join.Group, joined.MemberID, join.InstanceID, joined.Generation
	request.ProtocolType, request.Protocol = joined.ProtocolType, joined.Protocol
	for i, m := range joined.Members {
		assignment := kmsg.NewSyncGroupRequestGroupAssignment()
		assignment.MemberID = m.MemberID
		assignment.MemberAssignment = codec.EncodeGrant(nil, &codec.Assignment{
			Generation: joined.Generation, Active: []taskid.ID{{Subtopology: "counts", Partition: int32(i)}}})
		request.GroupAssignment = append(request.GroupAssignment, assignment)
	}
	synced, err := request.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(synced.ErrorCode)
}

// oneThread is an application of one thread, as its REST side shows it.
type oneThread struct{}

func (oneThread) State() string { return "RUNNING" }
func (oneThread) Process() metadata.Process {
	return metadata.Process{ApplicationID: "g", Group: "g", ClientID: "wc-0", ProcessID: "p0", Host: "host0:8080"}
}
func (oneThread) Threads() []metadata.ThreadStatus {
	return []metadata.ThreadStatus{{Name: "wc-0-StreamThread-1", State: "RUNNING", InstanceID: "wc-0-StreamThread-1-consumer", MemberID: "m0",
		Active: []taskid.ID{{Subtopology: "counts"}}}}
}
func (a oneThread) Metadata(context.Context) (metadata.Snapshot, error) {
	return metadata.Snapshot{Group: "g", State: "Stable"}.WithLocal(a.Process(), a.Threads()), nil
}
func (oneThread) Topology() string              { return "Topologies:\n" }
func (oneThread) Gatherer() prometheus.Gatherer { return prometheus.NewRegistry() }
