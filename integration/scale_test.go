package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/integration/proc"
	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/millrace-io/millrace/metadata"
	"github.com/millrace-io/millrace/metadata/rest"
	"github.com/millrace-io/millrace/streams"
)

// scaled is a job that has grown from two processes to four, and then loses the last two.
type scaled struct {
	job
	in      *input
	ctx     context.Context
	client  *kgo.Client
	workers []*worker
	stay    []*worker
	surplus []string // instance ids of the stopped processes, as they told over REST
	before  proc.Group
}

func scaleOut(t *testing.T, session time.Duration) *scaled {
	s := &scaled{job: newJob(t), in: newInput(), ctx: patient(t)}
	s.client = newClient(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	follower := s.follow(t)
	for i := range 4 {
		w := newWorker(t, s.job, fmt.Sprintf("wc-%d", i), streams.ExactlyOnce)
		w.cfg.Session = session
		w.start(t)
		s.workers = append(s.workers, w)
		if i == 1 {
			settled(t, s.ctx, s.workers...)
			s.in.feed(t, s.client, s.job, 500)
		}
	}
	s.before = settled(t, s.ctx, s.workers...)
	s.in.feed(t, s.client, s.job, 500)
	if err := follower.Await(s.ctx, s.in.fed()); err != nil {
		t.Fatal(err)
	}
	return s
}

// scaleIn stops the last two processes, which do not leave the group.
func (s *scaled) scaleIn(t *testing.T) {
	t.Helper()
	for _, w := range s.workers[2:] {
		ids, err := w.rest().InstanceIDs(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		s.surplus = append(s.surplus, ids...)
	}
	for _, w := range s.workers[2:] {
		if err := w.Stop(patience); err != nil {
			t.Fatal(err)
		}
	}
	s.stay = s.workers[:2]
	slices.Sort(s.surplus)
	want := []string{"wc-2-StreamThread-1-consumer", "wc-2-StreamThread-2-consumer", "wc-3-StreamThread-1-consumer", "wc-3-StreamThread-2-consumer"}
	if !slices.Equal(s.surplus, want) {
		t.Fatalf("the processes told the instance ids %v", s.surplus)
	}
}

// finish holds everything against the replay: the tasks of the stopped processes have moved, and nothing is lost or counted twice.
// It returns how many generations have passed since before the stop, by what the coordinator says when nobody is left to join again.
func (s *scaled) finish(t *testing.T) int32 {
	t.Helper()
	after := settled(t, s.ctx, s.stay...)
	for id := range after.Tasks {
		if strings.HasPrefix(id, "wc-2") || strings.HasPrefix(id, "wc-3") {
			t.Errorf("%s is still there", id)
		}
	}
	follower := s.follow(t)
	s.in.feed(t, s.client, s.job, 500)
	if err := follower.Await(s.ctx, s.in.fed()); err != nil {
		t.Fatal(err)
	}
	for _, w := range s.stay {
		if err := w.Stop(patience); err != nil {
			t.Fatal(err)
		}
	}
	s.compare(t, s.in)
	group, err := metadata.Describe(s.ctx, kadm.NewClient(s.client), s.AppID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if group.State != "Stable" || len(group.Instances) != len(s.stay) {
		t.Errorf("the group is %s with %d processes, want the %d that stayed", group.State, len(group.Instances), len(s.stay))
	}
	return group.Generation - s.before.Generation
}

// Scale from two to four processes and back: the operator asks the surplus processes for their instance ids over REST, stops them, and
// removes all ids in one batch. Exactly one generation passes.
func TestScaleInByOneBatch(t *testing.T) {
	s := scaleOut(t, 30*time.Second)
	millrace := buildMillrace(t)
	s.listed(t, millrace)
	s.scaleIn(t)
	remove := []string{"remove-members", "-brokers", strings.Join(bootstrap, ","), "-group", s.AppID, "-instance-ids-from", "-"}
	if out := millrace(strings.Join(s.surplus, "\n"), remove...); strings.Count(out, "removed") != len(s.surplus) {
		t.Errorf("millrace says\n%s", out)
	}
	if passed := s.finish(t); passed != 1 {
		t.Errorf("%d generations have passed, want 1", passed)
	}
	// S140: the same ids again, and one that nobody ever had, are gone already, which is no failure.
	if out := millrace(strings.Join(append(s.surplus, "absent"), "\n"), remove...); strings.Count(out, "already gone") != len(s.surplus)+1 {
		t.Errorf("millrace says\n%s", out)
	}
}

// listed holds what the command line tells of the group, asked over REST and of the coordinator.
func (s *scaled) listed(t *testing.T, millrace func(string, ...string) string) {
	t.Helper()
	hosts := map[string]string{}
	for _, w := range s.workers {
		for n := range 2 {
			hosts[fmt.Sprintf("%s-StreamThread-%d-consumer", w.cfg.ClientID, n+1)] = w.cfg.REST
		}
	}
	broker := []string{"-brokers", strings.Join(bootstrap, ","), "-group", s.AppID}
	for name, args := range map[string][]string{
		"over REST":          {"instances", "-o", "json", "-url", "http://" + s.workers[0].cfg.REST},
		"of the coordinator": append([]string{"instances", "-o", "json"}, broker...),
	} {
		var list rest.InstancesResponse
		if err := json.Unmarshal([]byte(millrace("", args...)), &list); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := map[string]string{}
		for _, in := range list.Instances {
			got[in.InstanceID] = in.Host
			if !slices.Equal(in.ActiveTasks, s.before.Tasks[in.InstanceID]) {
				t.Errorf("%s: %s has tasks %v, want %v", name, in.InstanceID, in.ActiveTasks, s.before.Tasks[in.InstanceID])
			}
		}
		if !maps.Equal(got, hosts) {
			t.Errorf("%s: %v, want %v", name, got, hosts)
		}
	}
	table := millrace("", append([]string{"members"}, broker...)...)
	for id, tasks := range s.before.Tasks { // one each
		line := regexp.MustCompile(`(?m)^` + id + `-\S+ +` + id + ` +/?127\.0\.0\.1 +Stable +` + regexp.QuoteMeta(strings.Join(tasks, " ")) + ` *$`)
		if !line.MatchString(table) {
			t.Errorf("members does not tell that %s has %v:\n%s", id, tasks, table)
		}
	}
}

// buildMillrace builds the command line. The function runs it with a standard input and returns its output; it must succeed.
func buildMillrace(t *testing.T) func(stdin string, args ...string) string {
	t.Helper()
	program, err := proc.Build(t.Context(), t.TempDir(), "cmd/millrace")
	if err != nil {
		t.Fatal(err)
	}
	return func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil {
			text := ""
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				text = string(exit.Stderr)
			}
			t.Fatalf("millrace %v: %v\n%s%s", args, err, out, text)
		}
		return string(out)
	}
}

// The same without an operator: the sessions of the stopped processes end. At most one generation passes for each member.
func TestScaleInByTimeout(t *testing.T) {
	s := scaleOut(t, 8*time.Second)
	s.scaleIn(t)
	if passed := s.finish(t); passed < 1 || int(passed) > len(s.surplus) {
		t.Errorf("%d generations have passed, want 1 to %d", passed, len(s.surplus))
	}
}

// With a registration timeout all of them leave in one rebalance.
func TestScaleInByRegistrationTimeout(t *testing.T) {
	if embedded == nil {
		t.Skip("a real Kafka has no registration timeout")
	}
	s := scaleOut(t, 6*time.Second)
	if err := embedded.ConfigureGroup(s.ctx, s.AppID, coordinator.Settings{RegistrationTimeout: 6 * time.Second}, false); err != nil {
		t.Fatal(err)
	}
	s.scaleIn(t)
	if passed := s.finish(t); passed != 1 {
		t.Errorf("%d generations have passed, want 1", passed)
	}
}
