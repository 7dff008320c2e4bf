package groupdiff

import (
	"regexp"
	"strings"
)

// A knownDifference is one that is no mistake of either side.
type knownDifference struct {
	name    string
	reason  string
	applies func(p *pair, kafka, ours string) bool
	hide    func(answer string) string // leaves out of an answer what may differ
}

// known is the table of explained differences.
var known = []knownDifference{
	{"who leads after the leader",
		"hash order: when the leader is gone or does not rejoin, Kafka takes the first member of a hash map; we take the one that joined first",
		func(p *pair, kafka, ours string) bool {
			a, b := leaderOf(kafka), leaderOf(ours)
			return a != b && a != "" && b != "" && a != p.leader && b != p.leader
		}, withoutLeader},
	{"tie in the vote for a protocol",
		"hash order: Kafka takes the first of a hash map of equally voted protocols; with us the present one wins, then the leader's order",
		func(p *pair, kafka, ours string) bool {
			a, b := protocolOf(kafka), protocolOf(ours)
			return a != b && a != "" && b != "" && p.orders > 1
		}, withoutProtocol},
}

// explain names the rows that explain a difference, or returns "".
func (p *pair) explain(kafka, ours string) string {
	var rows []string
	k, o := kafka, ours
	for _, row := range known {
		if row.applies(p, kafka, ours) {
			k, o = row.hide(k), row.hide(o)
			rows = append(rows, row.name)
		}
		if k == o {
			return strings.Join(rows, ", and ")
		}
	}
	return ""
}

var (
	leaderPattern   = regexp.MustCompile(`leader=(\S*)`)
	protocolPattern = regexp.MustCompile(`protocol='(\w*)'`)
	listPattern     = regexp.MustCompile(` \[.*\]$`)
)

func leaderOf(answer string) string { return group1(leaderPattern, answer) }

func protocolOf(answer string) string { return group1(protocolPattern, answer) }

func group1(p *regexp.Regexp, s string) string {
	if m := p.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// withoutLeader leaves out who leads, and the member list, which only the leader gets.
func withoutLeader(answer string) string {
	return listPattern.ReplaceAllString(leaderPattern.ReplaceAllString(answer, ""), "")
}

// withoutProtocol leaves out the protocol. The metadata is the same for all protocols of a client here.
func withoutProtocol(answer string) string { return protocolPattern.ReplaceAllString(answer, "") }
