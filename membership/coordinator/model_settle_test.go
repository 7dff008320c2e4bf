package coordinator

import (
	"fmt"
	"slices"
	"strings"
)

// settle gives every client that runs time to do what it should, until the group is Stable with just those members.
func (m *model) settle() error {
	m.held = false
	if err := m.do("release"); err != nil {
		return err
	}
	for producer := range len(m.clients) + 1 { // the zombies have the last one
		if err := m.do("end-txn abort producer=%d", producer+1); err != nil {
			return err
		}
	}
	for range 300 {
		for _, c := range m.clients {
			if c.stopped {
				continue
			}
			if err := c.act(); err != nil {
				return err
			}
		}
		if m.settled() {
			return m.durable()
		}
		if err := m.do("advance 1s"); err != nil {
			return err
		}
	}
	m.expect("state=Stable")
	return fmt.Errorf("after quiet time the group is %+v", m.w.m.groups["g"])
}

// durable crashes a group that has settled: what comes back is what was there.
func (m *model) durable() error {
	before, _ := m.w.m.Group("g")
	if err := m.do("fetch stable as=before"); err != nil {
		return err
	}
	m.generation = 0
	if err := m.do("reload crash"); err != nil {
		return err
	}
	if err := m.do("fetch stable as=after"); err != nil {
		return err
	}
	want, got := formatAnswer(m.w.names["before"].answer), formatAnswer(m.w.names["after"].answer)
	if want != got || strings.Contains(got, "88 ") {
		m.expect("answer=after error=0 offsets=%s", fields(m.w.names["before"].answer)["offsets"])
		return fmt.Errorf("before the crash the offsets were %s, after it they are %s", want, got)
	}
	after, _ := m.w.m.Group("g")
	if before.State == stable.String() && !(after.State == before.State && after.Generation == before.Generation && slices.Equal(sortedIDs(before), sortedIDs(after))) {
		m.expect("state=%s generation=%d members=(%s)", before.State, before.Generation, strings.Join(sortedIDs(before), ","))
		return fmt.Errorf("before the crash the group was %+v, after it it is %+v", before, after)
	}
	return nil
}

func sortedIDs(g Group) []string { return slices.Sorted(slices.Values(memberIDs(g))) }

func (m *model) settled() bool {
	running := 0
	g := m.w.m.groups["g"]
	for _, c := range m.clients {
		if c.stopped {
			continue
		}
		running++
		if g == nil || !c.member || c.asked != nil || c.gen != g.generation || g.byID[c.id] == nil {
			return false
		}
	}
	return running == 0 || g.state == stable && len(g.members) == running
}
