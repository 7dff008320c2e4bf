package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/millrace-io/millrace/integration/cluster/admin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// serve starts a cluster on dir with its admin side.
func serve(t *testing.T, dir string) (*cluster.Cluster, *admin.Client, *httptest.Server) {
	t.Helper()
	c, err := cluster.Start(cluster.DataDir(dir), cluster.InitialRebalanceDelay(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(admin.Handler(c))
	client, err := admin.NewClient(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, client, server
}

// A member speaks for one static instance.
type member struct {
	t        *testing.T
	client   *kgo.Client
	group    string
	instance string
	id       string
	joined   *kmsg.JoinGroupResponse
}

func newMember(t *testing.T, c *cluster.Cluster, group, instance string) *member {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.ClientID(instance))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &member{t: t, client: client, group: group, instance: instance}
}

// join waits for a generation, and syncs; a leader assigns nothing.
func (m *member) join(ctx context.Context) error {
	q := kmsg.NewPtrJoinGroupRequest()
	q.Group, q.MemberID, q.InstanceID, q.ProtocolType = m.group, m.id, &m.instance, "consumer"
	q.SessionTimeoutMillis, q.RebalanceTimeoutMillis = 60_000, 60_000
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name = "range"
	q.Protocols = append(q.Protocols, p)
	joined, err := q.RequestWith(ctx, m.client)
	if err == nil {
		err = kerr.ErrorForCode(joined.ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("join %s: %w", m.instance, err)
	}
	m.id, m.joined = joined.MemberID, joined
	s := kmsg.NewPtrSyncGroupRequest()
	s.Group, s.MemberID, s.InstanceID, s.Generation = m.group, m.id, &m.instance, joined.Generation
	s.ProtocolType, s.Protocol = joined.ProtocolType, joined.Protocol
	synced, err := s.RequestWith(ctx, m.client)
	if err == nil {
		err = kerr.ErrorForCode(synced.ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("sync %s: %w", m.instance, err)
	}
	return nil
}

// together lets members join at the same time.
func together(t *testing.T, members ...*member) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	failures := make([]error, len(members))
	var done sync.WaitGroup
	for i, m := range members {
		done.Go(func() { failures[i] = m.join(ctx) })
	}
	done.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
}

func TestForcedRebalanceRemovesWhoDoesNotCome(t *testing.T) {
	c, client, _ := serve(t, t.TempDir())
	a, b, gone := newMember(t, c, "g", "a"), newMember(t, c, "g", "b"), newMember(t, c, "g", "gone")
	together(t, a, b, gone)
	before := picture(t, client, "g")
	if len(before.Members) != 3 || before.State != "Stable" {
		t.Fatalf("the group is %+v", before)
	}
	result := make(chan admin.Change, 1)
	go func() {
		change, err := client.ForceRebalance(t.Context(), "g", admin.Force{Deadline: admin.Duration(2 * time.Second)})
		if err != nil {
			t.Error(err)
		}
		result <- change
	}()
	await(t, client, "g", func(g admin.Group) bool { return g.State == "PreparingRebalance" })
	together(t, a, b)
	change := <-result
	if change.After != before.Generation+1 || change.Before != before.Generation || !slices.Equal(change.Removed, []string{"gone"}) || !slices.Equal(change.Kept, []string{"a", "b"}) {
		t.Errorf("the rebalance did %+v", change)
	}
	if after := picture(t, client, "g"); after.Generation != before.Generation+1 || len(after.Members) != 2 {
		t.Errorf("the group is %+v", after)
	}
}

func picture(t *testing.T, client *admin.Client, group string) admin.Group {
	t.Helper()
	g, err := client.Group(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// await asks until the group is as wanted.
func await(t *testing.T, client *admin.Client, group string, wanted func(admin.Group) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		g := picture(t, client, group)
		if wanted(g) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the group stays %+v", g)
		}
	}
}

func TestForceIsRefused(t *testing.T) {
	c, client, _ := serve(t, t.TempDir())
	_, err := client.ForceRebalance(t.Context(), "nobody", admin.Force{})
	if refused, ok := errors.AsType[*admin.Error](err); !ok || refused.Name != "GROUP_ID_NOT_FOUND" || refused.Code != 69 {
		t.Errorf("a group that does not exist: %v", err)
	}
	_, err = c.ForceRebalance(t.Context(), "", 0)
	if refused, ok := errors.AsType[*cluster.GroupError](err); !ok || !errors.Is(err, kerr.InvalidGroupID) || refused.Reason == "" {
		t.Errorf("no group: %v", err)
	}
}

func TestExpectedMembersWaitForEachOtherAndSettingsAreKept(t *testing.T) {
	dir := t.TempDir()
	c, client, _ := serve(t, dir)
	a := newMember(t, c, "g/1", "a")
	together(t, a)
	set, err := client.Expect(t.Context(), "g/1", admin.Expected{InstanceIDs: []string{"a", "b", "c"}})
	if err != nil || len(set.Expected) != 3 {
		t.Fatalf("settings are %+v, %v", set, err)
	}
	b, late := newMember(t, c, "g/1", "b"), newMember(t, c, "g/1", "c")
	arrived := make(chan error, 2)
	go func() { arrived <- b.join(t.Context()) }()
	await(t, client, "g/1", func(g admin.Group) bool { return len(g.Newcomers) > 0 })
	if g := picture(t, client, "g/1"); g.State != "Stable" || g.Generation != 1 || !slices.Equal(g.Newcomers, []string{"b"}) {
		t.Errorf("while one of them is missing the group is %+v", g)
	}
	go func() { arrived <- late.join(t.Context()) }()
	await(t, client, "g/1", func(g admin.Group) bool { return g.State != "Stable" })
	together(t, a)
	for range 2 {
		if err := <-arrived; err != nil {
			t.Error(err)
		}
	}
	if g := picture(t, client, "g/1"); g.Generation != 2 || len(g.Members) != 3 {
		t.Errorf("with all of them the group is %+v", g)
	}

	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	_, client, _ = serve(t, dir)
	if g := picture(t, client, "g/1"); !slices.Equal(g.Settings.Expected, []string{"a", "b", "c"}) {
		t.Errorf("after a restart the settings are %+v", g.Settings)
	}
	off, err := client.Configure(t.Context(), "g/1", admin.Settings{})
	if now, _ := client.Settings(t.Context(), "g/1"); err != nil || len(off.Expected)+len(now.Expected) != 0 {
		t.Errorf("turned off: %+v, %v", now, err)
	}
}

// Everything that a request can do wrong is told, with a status of its own.
func TestBadRequestsAreTold(t *testing.T) {
	_, _, server := serve(t, t.TempDir())
	const body = "application/json"
	for name, test := range map[string]struct {
		method, path, kind, body string
		status                   int
		want                     string
	}{
		"unknown path":       {"GET", "/admin/v2", "", "", 404, "there is no GET /admin/v2"},
		"no such group":      {"GET", "/admin/v1/groups/x", "", "", 404, `there is no group \"x\"`},
		"method":             {"DELETE", "/admin/v1/groups/x", "", "", 404, "there is no DELETE"},
		"kind of body":       {"PUT", "/admin/v1/groups/x/settings", "text/plain", "{}", 415, "application/json"},
		"no JSON":            {"PUT", "/admin/v1/groups/x/settings", body, "{", 400, "cannot be read"},
		"unknown setting":    {"PUT", "/admin/v1/groups/x/settings", body, `{"target":1}`, 400, `unknown field`},
		"null":               {"PUT", "/admin/v1/groups/x/settings", body, "null", 400, "must be a JSON object"},
		"empty body":         {"PUT", "/admin/v1/groups/x/settings", body, "", 400, "must be a JSON object"},
		"two objects":        {"PUT", "/admin/v1/groups/x/settings", body, `{}{"target_size":1}`, 400, `follows`},
		"number as duration": {"PUT", "/admin/v1/groups/x/settings", body, `{"expansion_timeout":5}`, 400, "written as text"},
		"bad setting":        {"PUT", "/admin/v1/groups/x/settings", body, `{"target_size":-1}`, 400, "target size is -1"},
		"bad instance id":    {"PUT", "/admin/v1/groups/x/expected-instances", body, `{"instance_ids":["a b"]}`, 400, "not an instance id"},
		"negative deadline":  {"POST", "/admin/v1/groups/x/force-rebalance", body, `{"deadline":"-1s"}`, 400, "deadline is -1s"},
		"refused":            {"POST", "/admin/v1/groups/x/force-rebalance", body, `{}`, 404, "GROUP_ID_NOT_FOUND"},
		"list":               {"GET", "/admin/v1/groups", "", "", 200, `{"groups":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", test.kind)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			var said strings.Builder
			if err := response.Write(&said); err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != test.status || !strings.Contains(said.String(), test.want) {
				t.Errorf("status %d, want %d with %s:\n%s", response.StatusCode, test.status, test.want, said.String())
			}
		})
	}
}

func TestClientNamesWhatIsWrong(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:1", "ftp://host", "http://"} {
		if _, err := admin.NewClient(address); err == nil {
			t.Errorf("%q is accepted", address)
		}
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer other.Close()
	client, err := admin.NewClient(other.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Group(t.Context(), "g"); err == nil || !strings.Contains(err.Error(), "not that of a cluster's admin side") {
		t.Errorf("another server: %v", err)
	}
}
