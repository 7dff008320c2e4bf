package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// runWith runs the command line in this process.
func runWith(stdin string, args ...string) (status int, out, errs string) {
	var stdout, stderr bytes.Buffer
	status = run(context.Background(), stdio{strings.NewReader(stdin), &stdout, &stderr}, args)
	return status, stdout.String(), stderr.String()
}

func TestExitStatus(t *testing.T) {
	for want, lines := range map[int][]string{
		statusOK:     {"help", "-h", "version", "instances -h", "remove-members -h"},
		statusFailed: {"instances -url http://127.0.0.1:1", "remove-members -brokers 127.0.0.1:1 -group g -instance-ids-from -"},
		statusUsage:  {"", "nonsense", "instances", "instances -nonsense", "instances -o x", "remove-members", "version x"},
	} {
		for _, line := range lines {
			if got, _, errs := runWith("", strings.Fields(line)...); got != want {
				t.Errorf("millrace %s: status %d, want %d\n%s", line, got, want, errs)
			}
		}
	}
}

// TestRemoveMembersFailsWhenOneIDFails: the others are done, and each has its line.
func TestRemoveMembersFailsWhenOneIDFails(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	cluster.ControlKey(kmsg.DescribeGroups.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
		resp.Groups = []kmsg.DescribeGroupsResponseGroup{{Group: "g", State: "Stable"}}
		return resp, nil, true
	})
	var reasons []string
	cluster.ControlKey(kmsg.LeaveGroup.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.LeaveGroupResponse)
		for _, m := range req.(*kmsg.LeaveGroupRequest).Members {
			if m.MemberID != "" {
				t.Errorf("member id %q is sent: with one, the coordinator checks the pair instead of removing the instance", m.MemberID)
			}
			reasons = append(reasons, *m.Reason)
			answer := kmsg.NewLeaveGroupResponseMember()
			answer.InstanceID = m.InstanceID
			switch *m.InstanceID {
			case "silent":
				continue
			case "gone":
				answer.ErrorCode = kerr.UnknownMemberID.Code
			case "fenced":
				answer.ErrorCode = kerr.FencedInstanceID.Code
			}
			resp.Members = append(resp.Members, answer)
		}
		return resp, nil, true
	})
	status, out, _ := runWith("", "remove-members", "-brokers", strings.Join(cluster.ListenAddrs(), ","), "-group", "g",
		"-instance-ids", "a,gone,fenced,silent", "-reason", strings.Repeat("ü", 300))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	want := []string{"a: removed", "gone: already gone", "fenced: failed: FENCED_INSTANCE_ID", "silent: failed: the coordinator's answer"}
	if status != statusFailed || len(lines) != len(want) {
		t.Fatalf("status %d\n%s", status, out)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want[i])
		}
	}
	if reasons[0] != strings.Repeat("ü", 255) {
		t.Errorf("the reason has %d bytes, want 255 characters", len(reasons[0]))
	}
}

// A broker that is silent, as behind a firewall, is told of when the time is over.
func TestSilentBroker(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	times := filepath.Join(t.TempDir(), "times.properties")
	if err := os.WriteFile(times, []byte("request.timeout.ms=100\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, limit := range [][]string{{"-timeout", "200ms"}, {"-command-config", times}} {
		status, _, said := runWith("", append([]string{"members", "-brokers", silent.Addr().String(), "-group", "g"}, limit...)...)
		if status != statusFailed || !strings.Contains(said, silent.Addr().String()) || !strings.Contains(said, "hint: there was no answer in time") {
			t.Errorf("%q: status %d\n%s", limit, status, said)
		}
	}
}

// A member id in the place of an instance id would otherwise look like a success.
func TestMemberIDIsNoInstanceID(t *testing.T) {
	var said bytes.Buffer
	term := &terminal{stdio: stdio{nil, io.Discard, &said}}
	report := removalReport{Group: "g"}
	report.plan(named([]string{"m-1", "absent"}), nil)
	report.warn(term, kadm.DescribedGroup{Group: "g", Members: []kadm.DescribedGroupMember{{MemberID: "m-1"}}})
	if got := said.String(); !strings.Contains(got, "m-1 is the member id of a member that is there, and no instance id") || strings.Contains(got, "absent") {
		t.Errorf("it said %q", got)
	}
}

func TestShortTasks(t *testing.T) {
	for names, want := range map[string]string{
		"":                          "-",
		"a_0":                       "a_0",
		"a_0 a_1 a_2 a_4 b_5 b_6":   "a_[0-2] a_4 b_[5-6]",
		"a_3 b_4 a_4":               "a_3 b_4 a_4",
		"a_1 strange a_2":           "a_1 strange a_2",
		"x-repartition_9 x_10 x_11": "x-repartition_9 x_[10-11]",
	} {
		if got := shortTasks(strings.Fields(names)); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
}
