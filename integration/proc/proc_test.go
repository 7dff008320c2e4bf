package proc

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func sh(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(t.TempDir(), "shell", "/bin/sh", nil, "-c", script)
	if err != nil {
		t.Skipf("no /bin/sh to stand for a program: %v", err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestProcessTellsHowItEnded(t *testing.T) {
	killed := sh(t, "sleep 60")
	killed.Kill()
	if !killed.Killed() {
		t.Errorf("after SIGKILL: %v", killed.Err())
	}
	stopped := sh(t, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done")
	if err := stopped.AwaitLog(t.Context(), "ready"); err != nil {
		t.Fatal(err)
	}
	if err := stopped.Stop(time.Minute); err != nil || stopped.Killed() {
		t.Errorf("a process that stops by itself: %v", err)
	}
	failed := sh(t, "echo the reason; exit 3")
	<-failed.Ended()
	if err := failed.Stop(time.Minute); err == nil || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("a process that failed: %v", err)
	}
}

func TestStubbornProcessIsKilled(t *testing.T) {
	p := sh(t, "trap '' TERM; echo ready; while :; do sleep 0.01; done")
	if err := p.AwaitLog(t.Context(), "ready"); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(50 * time.Millisecond); err == nil || !p.Killed() {
		t.Errorf("Stop: %v, killed %t", err, p.Killed())
	}
}

func TestAwaitEndsWithTheProcessAndWithTheContext(t *testing.T) {
	never := func() (bool, error) { return false, nil }
	if err := sh(t, "echo bye").Await(t.Context(), "miracle", never); err == nil || !strings.Contains(err.Error(), "miracle") {
		t.Errorf("a process that has ended: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sh(t, "sleep 60").Await(ctx, "miracle", never); err == nil {
		t.Error("a wait went on after its context")
	}
}

func TestMetricSumsOverLabels(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("# HELP a_total x\na_total{thread=\"1\"} 2\na_total{thread=\"2\"} 3\na_total_more 7\nb 1\n"))
	}))
	defer server.Close()
	r := REST(strings.TrimPrefix(server.URL, "http://"))
	if n, err := r.Metric(t.Context(), "a_total"); err != nil || n != 5 {
		t.Errorf("a_total is %v, %v", n, err)
	}
	if _, err := r.Metric(t.Context(), "c"); err == nil {
		t.Error("a metric that is not there has a value")
	}
}

func TestGroupComparisons(t *testing.T) {
	g := Group{3, map[string][]string{"a": {"x_0", "y_1"}, "b": {"x_1", "y_0"}}}
	moved := Group{3, map[string][]string{"a": {"x_0", "y_0"}, "b": {"x_1", "y_1"}}}
	later := Group{4, g.Tasks}
	if !g.Equal(g) || g.Equal(moved) || g.Equal(later) {
		t.Error("a moved task or another generation was not noticed")
	}
	twice := Group{3, map[string][]string{"a": {"x_0", "y_1"}, "b": {"x_1", "y_1"}}}
	if !g.Complete(2, 4) || g.Complete(3, 4) || twice.Complete(2, 4) {
		t.Error("completeness is not seen")
	}
}
