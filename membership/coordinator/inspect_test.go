package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// cmdShow prints the picture of a group.
func (w *world) cmdShow(a *args) error {
	id := a.text("group", "g")
	g, ok := w.m.Group(id)
	if !ok {
		w.printf("%s: no such group", id)
		return nil
	}
	w.printf("%s: %s generation=%d protocol=%s leader=%s", id, g.State, g.Generation, plain(g.Protocol), plain(g.Leader))
	for _, m := range g.Members {
		line := fmt.Sprintf("  %s instance=%s session=%v rebalance=%v client=%s host=%s protocols=(%s) assignment=%q", m.ID, nullableText(m.InstanceID),
			m.SessionTimeout, m.RebalanceTimeout, m.ClientID, m.Host, strings.Join(m.Protocols, ","), m.Assignment)
		if m.Joining {
			line += " joining"
		}
		if m.Syncing {
			line += " syncing"
		}
		if m.Offline {
			line += " offline"
		}
		if m.Spare {
			line += " spare"
		}
		w.printf("%s", line)
	}
	for _, id := range g.Newcomers {
		w.printf("  instance=%s waits to become a member", id)
	}
	for _, id := range g.Pending {
		w.printf("  %s pending", id)
	}
	return nil
}

func (w *world) cmdParked(*args) error {
	for _, s := range w.parked() {
		w.printf("%s", w.title(s))
	}
	return nil
}

// cmdLog prints what the log says last of each key.
func (w *world) cmdLog(a *args) error {
	only := a.text("group", "")
	for p := range w.cfg.OffsetsPartitions {
		latest := make(map[string]int)
		for i, r := range w.log[p] {
			if r.Marker == nil {
				latest[string(r.Key)] = i
			}
		}
		for i, r := range w.log[p] {
			line := describeRecord(r)
			if r.Marker == nil && latest[string(r.Key)] == i && strings.Contains(line, only) {
				w.printf("%s", line)
			}
		}
	}
	return nil
}

// describeAppend says in short what an append stores.
func (w *world) describeAppend(a *Append) string {
	var parts []string
	for _, r := range a.Records {
		text := describeRecord(LogRecord{Record: r, Txn: a.Txn})
		v := kmsg.NewGroupMetadataValue()
		if r.Value != nil && r.Key[1] == groupKeyVersion && v.ReadFrom(r.Value) == nil {
			var ids []string
			for _, m := range v.Members {
				ids = append(ids, m.MemberID)
			}
			head, _, _ := strings.Cut(text, ":")
			text = fmt.Sprintf("%s generation=%d members=(%s)", head, v.Generation, strings.Join(ids, ","))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// describeRecord decodes a record of __consumer_offsets.
func describeRecord(r LogRecord) string {
	if r.Marker != nil {
		return r.Marker.String()
	}
	txn := ""
	if r.Txn != nil {
		txn = fmt.Sprintf(" in the transaction of producer %d", r.Txn.ProducerID)
	}
	var group kmsg.GroupMetadataKey
	if group.ReadFrom(r.Key) == nil && group.Version == groupKeyVersion {
		return fmt.Sprintf("group %s: %s%s", group.Group, describeGroupValue(r.Value), txn)
	}
	var key kmsg.OffsetCommitKey
	if err := key.ReadFrom(r.Key); err != nil {
		return fmt.Sprintf("key %x: %v", r.Key, err)
	}
	if r.Value == nil {
		return fmt.Sprintf("offset %s %s/%d: tombstone%s", key.Group, key.Topic, key.Partition, txn)
	}
	v := kmsg.NewOffsetCommitValue()
	if err := v.ReadFrom(r.Value); err != nil {
		return fmt.Sprintf("offset %s %s/%d: %v", key.Group, key.Topic, key.Partition, err)
	}
	return fmt.Sprintf("offset %s %s/%d: v%d %d%s", key.Group, key.Topic, key.Partition, v.Version, v.Offset, txn)
}

func describeGroupValue(value []byte) string {
	if value == nil {
		return "tombstone"
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(value); err != nil {
		return err.Error()
	}
	s := fmt.Sprintf("v%d generation=%d type=%s protocol=%s leader=%s", v.Version, v.Generation, plain(v.ProtocolType), nullableText(v.Protocol), nullableText(v.Leader))
	for _, m := range v.Members {
		s += fmt.Sprintf(" [%s instance=%s session=%v rebalance=%v subscription=%q assignment=%q]", m.MemberID, nullableText(m.InstanceID),
			time.Duration(m.SessionTimeoutMillis)*time.Millisecond, time.Duration(m.RebalanceTimeoutMillis)*time.Millisecond, m.Subscription, m.Assignment)
	}
	return s
}

// cmdExpect asserts things about a group, about the answer to a request, or about what is parked.
func (w *world) cmdExpect(a *args) error {
	var wrong []string
	check := func(what, got, want string) {
		if got != want {
			wrong = append(wrong, fmt.Sprintf("%s is %s, want %s", what, plain(got), plain(want)))
		}
	}
	if a.has("parked") {
		check("parked", sortedList(w.parkedNames()), sortedList(a.list("parked")))
	}
	if name := a.answer(); name != "" {
		if err := w.expectAnswer(name, a, check); err != nil {
			return err
		}
	} else if err := w.expectGroup(a, check); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	w.printf("ok")
	return nil
}

// answer names the request whose answer is looked at: the newest one if only an answer has what is asked for.
func (a *args) answer() string {
	implied := ""
	for _, name := range []string{"error", "errors", "member", "skip", "list", "assignment", "offsets"} {
		if _, given := a.values[name]; given {
			implied = "last"
		}
	}
	return a.text("answer", implied)
}

func (w *world) parkedNames() []string {
	var names []string
	for _, s := range w.parked() {
		names = append(names, s.name)
	}
	return names
}

func sortedList(list []string) string {
	list = slices.Clone(list)
	slices.Sort(list)
	return "(" + strings.Join(list, ",") + ")"
}

// expectGroup checks state, generation, leader, protocol, members, instances and pending ids of a group.
func (w *world) expectGroup(a *args, check func(what, got, want string)) error {
	id := a.text("group", "g")
	g, ok := w.m.Group(id)
	switch {
	case a.bool("absent"):
		if ok {
			return fmt.Errorf("group %s is %s, want it absent", id, g.State)
		}
		return nil
	case !ok && !a.has("parked"):
		return fmt.Errorf("there is no group %s", id)
	}
	var members, instances, offline, spares []string
	for _, m := range g.Members {
		members = append(members, m.ID)
		if m.Offline {
			offline = append(offline, m.ID)
		}
		if m.Spare {
			spares = append(spares, m.ID)
		}
		if m.InstanceID != nil {
			instances = append(instances, *m.InstanceID)
		}
	}
	for _, c := range []struct{ name, got string }{
		{"state", g.State},
		{"generation", fmt.Sprint(g.Generation)},
		{"leader", g.Leader},
		{"protocol", g.Protocol},
	} {
		if a.has(c.name) {
			check(c.name, c.got, a.wanted(c.name))
		}
	}
	for _, c := range []struct {
		name string
		got  []string
	}{{"members", members}, {"instances", instances}, {"pending", g.Pending}, {"offline", offline}, {"spares", spares}, {"newcomers", g.Newcomers}} {
		if a.has(c.name) {
			check(c.name, sortedList(c.got), sortedList(a.list(c.name)))
		}
	}
	return nil
}

// expectAnswer checks the answer to the newest request of a name.
func (w *world) expectAnswer(name string, a *args, check func(what, got, want string)) error {
	s := w.names[name]
	if s == nil {
		return fmt.Errorf("there is no request named %s", name)
	}
	if s.answer == nil {
		return fmt.Errorf("%s is not answered", w.title(s))
	}
	if a.has("error") {
		want, err := errorNamed(a.text("error", ""))
		if err != nil {
			return err
		}
		for _, got := range errorsIn(s.answer) {
			check("error", errorText(got), errorText(code(want)))
		}
	}
	if a.has("errors") {
		var got, want []string
		for _, c := range errorsIn(s.answer) {
			got = append(got, errorText(c))
		}
		for _, text := range a.list("errors") {
			e, err := errorNamed(text)
			if err != nil {
				return err
			}
			want = append(want, errorText(code(e)))
		}
		check("errors", strings.Join(got, ","), strings.Join(want, ","))
	}
	for name, got := range fields(s.answer) {
		if a.has(name) {
			check(name, got, a.wanted(name))
		}
	}
	return nil
}

// wanted is the value that is expected: states may be given by their first word, and lists in any order.
func (a *args) wanted(name string) string {
	if name == "list" || name == "instances" {
		return strings.Join(slices.Sorted(slices.Values(a.list(name))), ",")
	}
	want := a.text(name, "")
	if st, err := stateNamed(want); name == "state" && err == nil {
		return st.String()
	}
	return want
}
