package rest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/metadata"
)

var update = flag.Bool("update", false, "write the golden files from what is answered now")

// fakeApp answers from its fields.
type fakeApp struct {
	state    string
	threads  []metadata.ThreadStatus
	snapshot metadata.Snapshot
	err      error
	panics   bool
}

var taken = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func (a *fakeApp) State() string { return a.state }

func (a *fakeApp) Process() metadata.Process {
	return metadata.Process{ApplicationID: "wordcount", Group: "wordcount", ClientID: "wc-0", ProcessID: "p-0", Host: "10.0.0.1:8080"}
}

func (a *fakeApp) Threads() []metadata.ThreadStatus {
	if a.panics {
		panic("planted")
	}
	return a.threads
}

func (a *fakeApp) Metadata(context.Context) (metadata.Snapshot, error) {
	if a.err != nil {
		return metadata.Snapshot{}, a.err
	}
	return a.snapshot.WithLocal(a.Process(), a.threads), nil
}

func (a *fakeApp) Topology() string { return "Topologies:\n   Sub-topology: 0\n" }

func (a *fakeApp) Gatherer() prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	records := prometheus.NewCounter(prometheus.CounterOpts{Name: "millrace_records_total", Help: "Records."})
	records.Add(42)
	registry.MustRegister(records)
	return registry
}

func task(partition int32) taskid.ID {
	return taskid.ID{Subtopology: "word-counts", Partition: partition}
}

// twoProcesses is an application of two processes with a static thread each, a dynamic member, and a foreign one.
func twoProcesses() *fakeApp {
	instance := func(n, host, member string, partitions ...int32) metadata.Instance {
		in := metadata.Instance{Host: host, ProcessID: "p-" + n, ClientID: "wc-" + n, InstanceIDs: []string{"wc-" + n + "-StreamThread-1-consumer"},
			Stores: []string{"word-counts"}}
		for _, p := range partitions {
			in.Active = append(in.Active, task(p))
			in.TopicPartitions = append(in.TopicPartitions, metadata.TopicPartition{Topic: "lines", Partition: p})
		}
		in.Members = []metadata.Member{{MemberID: member, InstanceID: in.InstanceIDs[0], ClientID: in.InstanceIDs[0], ClientHost: "/10.0.0.9",
			Active: in.Active}}
		return in
	}
	return &fakeApp{
		state: "RUNNING",
		threads: []metadata.ThreadStatus{{Name: "wc-0-StreamThread-1", State: "RUNNING", InstanceID: "wc-0-StreamThread-1-consumer",
			MemberID: "m-0", Generation: 7, Active: []taskid.ID{task(0), task(1)}}},
		snapshot: metadata.Snapshot{ApplicationID: "wordcount", Group: "wordcount", ClusterID: "c1", State: "Stable", Generation: metadata.UnknownGeneration,
			Taken: taken, Instances: []metadata.Instance{
				instance("0", "10.0.0.1:8080", "m-0", 0, 1),
				instance("1", "10.0.0.2:8080", "m-1", 2, 3),
				{ClientID: "console", Members: []metadata.Member{{MemberID: "m-x", ClientID: "console", ClientHost: "/10.0.0.3", Problem: "its subscription is not ours: 0 bytes"}}},
			}},
	}
}

// get asks h, whose clock stands 1.5 s after the snapshot.
func get(t *testing.T, app *fakeApp, method, target string) (status int, header http.Header, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	newHandler(app, func() time.Time { return taken.Add(1500 * time.Millisecond) }).ServeHTTP(w, httptest.NewRequest(method, target, nil))
	data, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, w.Result().Header, string(data)
}

func TestAnswersMatchGoldenFiles(t *testing.T) {
	stale := twoProcesses()
	stale.snapshot.Stale = errors.New("unable to dial 10.0.0.7:9092")
	cases := []struct {
		golden, target string
		app            *fakeApp
		status         int
	}{
		{"metadata.json", "/v1/metadata", twoProcesses(), 200},
		{"metadata_stale.json", "/v1/metadata", stale, 200},
		{"metadata_not_joined.json", "/v1/metadata", &fakeApp{state: "CREATED", snapshot: metadata.Snapshot{Group: "wordcount", State: "Empty", Generation: metadata.UnknownGeneration, Taken: taken}}, 200},
		{"instances_local.json", "/v1/instances", twoProcesses(), 200},
		{"instances_group.json", "/v1/instances?scope=group", twoProcesses(), 200},
		{"instances_group.txt", "/v1/instances?scope=group&format=text", twoProcesses(), 200},
		{"threads.json", "/v1/threads", twoProcesses(), 200},
		{"topology.txt", "/v1/topology", twoProcesses(), 200},
		{"topology.json", "/v1/topology?format=json", twoProcesses(), 200},
		{"livez.json", "/livez", twoProcesses(), 200},
		{"readyz.json", "/readyz", twoProcesses(), 200},
		{"readyz_rebalancing.json", "/readyz", &fakeApp{state: "REBALANCING"}, 503},
		{"unavailable.json", "/v1/metadata", &fakeApp{state: "RUNNING", err: errors.New("unable to dial 10.0.0.7:9092")}, 503},
		{"page.html", "/", stale, 200},
	}
	for _, c := range cases {
		t.Run(c.golden, func(t *testing.T) {
			status, _, body := get(t, c.app, "GET", c.target)
			if status != c.status {
				t.Errorf("GET %s: status %d, want %d\n%s", c.target, status, c.status, body)
			}
			checkGolden(t, c.golden, body)
		})
	}
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", path, diff)
	}
}

func TestErrorsAreJSONWithACode(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	cases := []struct{ method, target, code string }{
		{"GET", "/nowhere", CodeNotFound},
		{"GET", "/v1/metadata/", CodeNotFound},
		{"GET", "/v1/%00%ff%0a", CodeNotFound},
		{"GET", "/" + long, CodeNotFound},
		{"POST", "/v1/metadata", CodeMethodNotAllowed},
		{"DELETE", "/", CodeMethodNotAllowed},
		{"GET", "/v1/instances?scope=world", CodeInvalidParameter},
		{"GET", "/v1/instances?scope=", CodeInvalidParameter},
		{"GET", "/v1/instances?format=xml", CodeInvalidParameter},
		{"GET", "/v1/instances?scop=group", CodeInvalidParameter},
		{"GET", "/v1/instances?scope=group&scope=local", CodeInvalidParameter},
		{"GET", "/v1/instances?scope=%zz", CodeInvalidParameter},
		{"GET", "/v1/instances?a;b", CodeInvalidParameter},
		{"GET", "/v1/metadata?x=" + long, CodeInvalidParameter},
		{"GET", "/v1/threads?x", CodeInvalidParameter},
		{"GET", "/v1/topology?format=svg", CodeInvalidParameter},
	}
	for _, c := range cases {
		status, header, body := get(t, twoProcesses(), c.method, c.target)
		var answer ErrorResponse
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Errorf("%s %.60s: not JSON: %v\n%.300s", c.method, c.target, err, body)
			continue
		}
		if answer.Error.Code != c.code || answer.Error.Message == "" || status != statusOf[c.code] {
			t.Errorf("%s %.60s: status %d, %+v; want code %s", c.method, c.target, status, answer.Error, c.code)
		}
		if len(body) > 1000 {
			t.Errorf("%s %.60s: the answer has %d bytes: what a client sent must be shortened", c.method, c.target, len(body))
		}
		if got := header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s %.60s: Content-Type %q", c.method, c.target, got)
		}
	}
}

func TestMethodNotAllowedNamesTheAllowedOnes(t *testing.T) {
	if _, header, _ := get(t, twoProcesses(), "PUT", "/livez"); header.Get("Allow") != "GET, HEAD" {
		t.Errorf("Allow = %q", header.Get("Allow"))
	}
	if status, _, _ := get(t, twoProcesses(), "HEAD", "/v1/metadata"); status != 200 {
		t.Errorf("HEAD: status %d, want 200", status)
	}
}

func TestLivezFailsOnADeadThreadAndAFailedApplication(t *testing.T) {
	dead := twoProcesses()
	dead.threads[0].State = "DEAD"
	for name, app := range map[string]*fakeApp{"dead thread": dead, "error": {state: "ERROR"}, "closed": {state: "NOT_RUNNING"}} {
		if status, _, body := get(t, app, "GET", "/livez"); status != 503 || !strings.Contains(body, CodeNotLive) {
			t.Errorf("%s: status %d, %s", name, status, body)
		}
	}
	if status, _, _ := get(t, &fakeApp{state: "REBALANCING"}, "GET", "/livez"); status != 200 {
		t.Errorf("rebalancing: status %d, want 200: a rebalance is no reason to restart", status)
	}
}

func TestMetricsAreExposed(t *testing.T) {
	status, _, body := get(t, twoProcesses(), "GET", "/metrics")
	if status != 200 || !strings.Contains(body, "millrace_records_total 42") {
		t.Errorf("status %d\n%s", status, body)
	}
}

func TestPageShowsThreadsWhenTheCoordinatorIsAway(t *testing.T) {
	app := twoProcesses()
	app.err = errors.New("unable to dial <b>")
	status, _, body := get(t, app, "GET", "/")
	if status != 200 || !strings.Contains(body, "wc-0-StreamThread-1-consumer") || !strings.Contains(body, "unable to dial &lt;b&gt;") {
		t.Errorf("status %d\n%s", status, body)
	}
}

func TestAPanicInAHandlerIsAnInternalError(t *testing.T) {
	app := twoProcesses()
	app.panics = true
	if status, _, body := get(t, app, "GET", "/v1/threads"); status != 500 || !strings.Contains(body, CodeInternal) {
		t.Errorf("status %d, %s", status, body)
	}
}

// FuzzHandler asks arbitrary paths and queries: whatever comes, there is an answer and no panic.
func FuzzHandler(f *testing.F) {
	for _, s := range []string{"/v1/metadata", "/v1/instances?scope=group&format=text", "/v1/instances?scope=%zz", "/%2e%2e/x?;", "/livez?&&=&"} {
		f.Add(s)
	}
	h := newHandler(twoProcesses(), func() time.Time { return taken })
	f.Fuzz(func(t *testing.T, target string) {
		r, err := http.NewRequest("GET", "http://h/"+strings.TrimPrefix(target, "/"), nil)
		if err != nil {
			return // what net/http would not have handed to a handler
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%q: status 500: %s", target, w.Body)
		}
	})
}

// Who pipes the instance ids of a process to millrace remove-members must not remove the successor of a fenced thread.
func TestFencedThreadsAreTold(t *testing.T) {
	app := twoProcesses()
	app.threads = append(app.threads, metadata.ThreadStatus{Name: "wc-0-StreamThread-2", State: "DEAD", InstanceID: "wc-0-StreamThread-2-consumer", Fenced: true})
	if _, _, body := get(t, app, "GET", "/v1/instances?format=text"); body != "wc-0-StreamThread-1-consumer\n" {
		t.Errorf("the text form is %q", body)
	}
	for _, target := range []string{"/v1/instances", "/v1/threads"} {
		if _, _, body := get(t, app, "GET", target); strings.Count(body, `"fenced": true`) != 1 {
			t.Errorf("%s does not tell:\n%s", target, body)
		}
	}
}
