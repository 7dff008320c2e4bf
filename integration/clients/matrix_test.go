package clients

import (
	"fmt"
	"slices"
	"strings"
)

// A testCase is what every client is asked to do, in a group and with topics that carry its name.
type testCase struct {
	name string
	what string
	only []string // the brokers that have what it takes; nil means all
}

var cases = []testCase{
	{"produce-consume", "create a topic, produce, consume in a group, commit", nil},
	{"admin", "describe topics and groups; read, set and delete offsets; delete group and topic", nil},
	{"static-bounce", "two static members restart one after the other: same instance, same partitions, same generation", nil},
	{"fenced", "a second member with the same instance id takes over, and the first one hears that it is fenced", nil},
	{"batch-removal", "two static members close and stay; one request removes both by instance id, in one generation", nil},
	{"transactions", "offsets in a transaction that commits and in one that aborts; read_committed sees the first only", nil},
	{"drafts", "what the drafts of KIP-345 asked for, set over HTTP: expected instances, a registration timeout, a hot spare, a forced rebalance; one generation each (`millrace dev` only)", ours},
	{"killed", "exactly-once with standby tasks in two processes of two threads: one restarts, the other one is killed with SIGKILL at work; both come back into the same generation, and each count is the next one of a replay", nil},
	{"operate", "the other tools: configs, transactions, offsets, delete records, verifiable clients, performance test, formatters of `__consumer_offsets`; what is not there is refused in words", nil},
	{"old-requests", "offsets by requests that Kafka 4 has dropped: OffsetCommit 0 and 1, OffsetFetch 0 (profile `kip345` only)", []string{"kip345"}},
}

// A result is a line that a client program prints. None of the fields set means that the case was not played.
type result struct {
	Case  string `json:"case"`
	OK    bool   `json:"ok"`
	Limit string `json:"limit"` // what the client lacks
	Error string `json:"error"`
}

// results are those of one client, by case.
type results map[string]result

// unexpected tells how a result differs from what is expected of the client, or "".
func (c client) unexpected(name string, got result) string {
	want := c.limits[name]
	switch {
	case got.Error != "":
		return got.Error
	case got.OK && want != "":
		return fmt.Sprintf("passes by now; take the limit %q out of the table", want)
	case got.OK, got.Limit != "" && got.Limit == want:
		return ""
	case got.Limit != "":
		return fmt.Sprintf("says %q, expected is %q", got.Limit, want)
	}
	return "no result; the program ended before"
}

// expected are the results that a client has to have on a broker.
func (c client) expected(broker string) results {
	all := results{}
	for _, tc := range cases {
		if c.plays(broker, tc) {
			all[tc.name] = result{Case: tc.name, OK: c.limits[tc.name] == "", Limit: c.limits[tc.name]}
		}
	}
	return all
}

// render writes the matrix of one broker, or of any, as a table in Markdown, with the limits as notes below it.
func render(list []client, broker string, of func(client) results) string {
	var notes []string
	rows := []string{"| client |", "|---|"}
	for _, tc := range cases {
		rows[0] += " " + tc.name + " |"
		rows[1] += "---|"
	}
	for _, c := range list {
		row := "| " + c.label() + " |"
		got := of(c)
		for _, tc := range cases {
			row += " " + cell(c.plays(broker, tc), got[tc.name], &notes) + " |"
		}
		rows = append(rows, row)
	}
	rows = append(rows, "")
	for i, note := range notes {
		rows = append(rows, fmt.Sprintf("%d. %s", i+1, note))
	}
	return strings.Join(rows, "\n") + "\n"
}

// summary writes what is expected of each client on each broker as a table.
func summary(list []client) string {
	rows := []string{"| client |", "|---|"}
	for _, b := range brokers {
		rows[0] += " " + b.title + " |"
		rows[1] += "---|"
	}
	for _, c := range list {
		row := "| " + c.label() + " |"
		for _, b := range brokers {
			row += " " + counts(c.expected(b.name)) + " |"
		}
		rows = append(rows, row)
	}
	return strings.Join(rows, "\n") + "\n"
}

// counts are the numbers of cases that pass and of those that a client has a limit for.
func counts(all results) string {
	passed := 0
	for _, r := range all {
		if r.OK {
			passed++
		}
	}
	switch limited := len(all) - passed; {
	case len(all) == 0:
		return "–"
	case limited > 0:
		return fmt.Sprintf("%d pass, %d limited", passed, limited)
	}
	return fmt.Sprintf("%d pass", passed)
}

func cell(played bool, r result, notes *[]string) string {
	switch {
	case !played:
		return "–"
	case r.OK:
		return "pass"
	case r.Limit == "":
		return "FAIL"
	}
	if !slices.Contains(*notes, r.Limit) {
		*notes = append(*notes, r.Limit)
	}
	return fmt.Sprintf("limit %d", slices.Index(*notes, r.Limit)+1)
}

// limits lists the limits of several cases.
func limits(pairs ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}
