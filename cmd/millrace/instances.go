package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace-io/millrace/internal/taskid"
	"github.com/millrace-io/millrace/metadata"
	"github.com/millrace-io/millrace/metadata/rest"
)

// runInstances lists a group, from its coordinator or from the REST side of one of the application's processes.
func runInstances(ctx context.Context, t *terminal, args []string) error {
	var (
		broker brokerFlags
		from   string
	)
	flags := t.flags("(-brokers host:port,… -group g | -url http://host:port)",
		"Lists every member (stream thread) of an application's group. -o text prints one instance id a line.",
		formTable, formJSON, formText)
	broker.register(flags)
	flags.StringVar(&from, "url", "", "the REST side of one of the application's processes, `http://host:port`, to be asked instead of brokers")
	if err := t.parse(flags, args); err != nil {
		return err
	}
	var (
		list rest.InstancesResponse
		err  error
	)
	switch {
	case from == "":
		if err = broker.check(t); err == nil {
			list, err = broker.list(ctx)
		}
	case broker.brokers != "" || broker.group != "" || broker.security.given():
		err = usagef("-url goes without -brokers, -group and what belongs to them: the process knows both")
	default:
		list, err = fetchInstances(ctx, from, cmp.Or(broker.timeout, defaultTimeout))
	}
	if err != nil {
		return err
	}
	switch t.form {
	case formJSON:
		return t.json(list)
	case formText:
		static := func(in rest.GroupInstance) bool { return in.InstanceID != "" }
		if len(list.Instances) > 0 && !slices.ContainsFunc(list.Instances, static) {
			t.note("the members of group %s are dynamic: none has an instance id", list.Group)
		}
		_, err := io.WriteString(t.out, list.Text())
		return err
	}
	return printInstances(t.out, list)
}

// list asks the group's coordinator.
func (f *brokerFlags) list(ctx context.Context) (rest.InstancesResponse, error) {
	var list rest.InstancesResponse
	err := f.withClient(ctx, func(ctx context.Context, client *kgo.Client) error {
		snapshot, err := metadata.Describe(ctx, kadm.NewClient(client), f.group, nil)
		if err == nil && snapshot.State == "Dead" {
			_, err = describeGroup(ctx, client, f.group) // tells why
		}
		list = rest.GroupInstances(snapshot, snapshot.Taken)
		return err
	})
	return list, err
}

// fetchInstances asks a process over REST.
func fetchInstances(ctx context.Context, base string, timeout time.Duration) (rest.InstancesResponse, error) {
	var list rest.InstancesResponse
	parsed, err := url.Parse(base)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return list, usagef("-url is %q: want http://host:port", base)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	target := parsed.JoinPath("/v1/instances").String() + "?scope=group"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return list, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return list, err // names method and URL
	}
	defer response.Body.Close()
	const most = 64 << 20 // far above any group; bounds what a wrong address can make us read
	body, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return list, fmt.Errorf("GET %s: %w", target, err)
	}
	if response.StatusCode != http.StatusOK {
		return list, fmt.Errorf("GET %s: %s: %s", target, response.Status, restError(body))
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return list, fmt.Errorf("GET %s: the answer is not that of a Millrace application: %w", target, err)
	}
	return list, nil
}

// restError is the message of a REST error, or the beginning of what came instead.
func restError(body []byte) string {
	var e rest.ErrorResponse
	if json.Unmarshal(body, &e) == nil && e.Error.Message != "" {
		return e.Error.Message
	}
	return fmt.Sprintf("%.200q", body)
}

func printInstances(w io.Writer, list rest.InstancesResponse) error {
	fmt.Fprintf(w, "group %s: %s, %d members\n", list.Group, list.GroupState, len(list.Instances))
	if len(list.Instances) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "INSTANCE ID\tHOST\tSTATE\tTASKS\tSTANDBY\tMEMBER ID")
	for _, in := range list.Instances {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(in.InstanceID, "(dynamic)"), cmp.Or(in.Host, in.ClientHost),
			cmp.Or(in.State, list.GroupState), shortTasks(in.ActiveTasks), shortTasks(in.StandbyTasks), in.MemberID)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, in := range list.Instances {
		if in.Problem != "" {
			fmt.Fprintf(w, "%s: %s\n", cmp.Or(in.InstanceID, in.MemberID), in.Problem)
		}
	}
	return nil
}

// shortTasks writes runs of partitions as ranges: a_[0-3] stands for a_0, a_1, a_2 and a_3. A list with a name that is none
// of ours stays as it is.
func shortTasks(names []string) string {
	type run struct {
		sub         string
		first, last int32
	}
	var runs []run
	for _, name := range names {
		id, err := taskid.Parse(name)
		if err != nil {
			return strings.Join(names, " ")
		}
		if n := len(runs); n > 0 && runs[n-1].sub == id.Subtopology && runs[n-1].last+1 == id.Partition {
			runs[n-1].last++
			continue
		}
		runs = append(runs, run{id.Subtopology, id.Partition, id.Partition})
	}
	var parts []string
	for _, r := range runs {
		if r.first == r.last {
			parts = append(parts, fmt.Sprintf("%s_%d", r.sub, r.first))
		} else {
			parts = append(parts, fmt.Sprintf("%s_[%d-%d]", r.sub, r.first, r.last))
		}
	}
	return cmp.Or(strings.Join(parts, " "), "-")
}
