package coordinator

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"
)

// do runs a command given as text.
func (w *world) do(line string) error {
	cmd, list, err := datadriven.ParseLine(line)
	if err != nil {
		return err
	}
	command, err := commandNamed(cmd)
	if err != nil {
		return err
	}
	return command(w, newArgs(list))
}

// quietly runs commands without printing.
func (w *world) quietly(lines ...string) error {
	before := w.take()
	defer func() { w.out = before }()
	for _, line := range lines {
		if err := w.do(line); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

// options passes arguments through to other commands.
func (a *args) options(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		if a.has(name) {
			fmt.Fprintf(&b, " %s=(%s)", name, strings.Join(a.values[name], ","))
		}
	}
	return b.String()
}

// cmdBase brings a group to generation 1: the static members a and b, unless others are named, join in one initial window;
// a leads; in Stable each is assigned its name in capitals. state= leads on from there, or stops before.
func (w *world) cmdBase(a *args) error {
	if w.m.cfg.InitialRebalanceDelay == 0 {
		return errors.New("base needs an initial rebalance delay: without one the first member does not wait for the others")
	}
	group := a.text("group", "g")
	lines, ids := w.joinAll(group, a)
	state, err := stateNamed(a.text("state", stable.String()))
	if err != nil {
		return err
	}
	if state != completingRebalance {
		lines = append(lines, w.syncAll(group, ids, a))
		for _, id := range ids[1:] {
			lines = append(lines, w.syncLine(group, id, a))
		}
	}
	if err := w.quietly(lines...); err != nil {
		return err
	}
	switch state {
	case empty:
		err = w.quietly(fmt.Sprintf("leave group=%s members=(%s)", group, strings.Join(ids, ",")))
	case preparingRebalance:
		err = w.quietly(w.rejoinLine(group, ids[0]) + a.options("type") + " as=" + ids[0])
	}
	if err != nil {
		return err
	}
	g, _ := w.m.Group(group)
	w.printf("%s: %s generation=%d leader=%s members=(%s)", group, g.State, g.Generation, g.Leader, strings.Join(memberIDs(g), ","))
	return nil
}

// joinAll lists the commands with which a base's members join, and the ids that they will have.
func (w *world) joinAll(group string, a *args) (lines, ids []string) {
	options := " group=" + group + a.options("session", "rebalance", "version", "protocols", "type")
	for _, name := range a.list("static", "a", "b") {
		ids = append(ids, fmt.Sprintf("%s-%d", name, w.ids[name]+1))
		lines = append(lines, "join instance="+name+options)
	}
	for _, name := range a.list("dynamic") {
		id := fmt.Sprintf("%s-%d", name, w.ids[name]+1)
		ids = append(ids, id)
		lines = append(lines, "join client="+name+options, "join member="+id+options)
	}
	// Every round of the initial rebalance in which somebody arrived is followed by another one.
	return append(lines, fmt.Sprintf("advance %v", 2*w.m.cfg.InitialRebalanceDelay)), ids
}

// stateNamed finds a group's state by Kafka's name, or by its first word, whatever the case.
func stateNamed(s string) (state, error) {
	for st := empty; st <= dead; st++ {
		if strings.EqualFold(s, st.String()) || strings.EqualFold(s+"Rebalance", st.String()) {
			return st, nil
		}
	}
	return empty, fmt.Errorf("%q is not a state: want Empty, Preparing, Completing, Stable or Dead", s)
}

func memberIDs(g Group) []string {
	var ids []string
	for _, m := range g.Members {
		ids = append(ids, m.ID)
	}
	return ids
}

// syncAll is the Sync with which the first of the ids assigns everybody its name in capitals.
func (w *world) syncAll(group string, ids []string, a *args) string {
	var assign []string
	for _, id := range ids {
		assign = append(assign, id+":"+strings.ToUpper(id[:strings.LastIndex(id, "-")]))
	}
	return w.syncLine(group, ids[0], a) + " assign=(" + strings.Join(assign, ",") + ")"
}

func (w *world) syncLine(group, id string, a *args) string {
	return fmt.Sprintf("sync group=%s member=%s%s", group, id, a.options("type"))
}

// cmdRejoin lets members join again with what they offer, and sync once they are all in; the leader among them
// assigns everybody in the group its name in capitals.
func (w *world) cmdRejoin(a *args) error {
	group := a.text("group", "g")
	members := a.list("members")
	for _, id := range members {
		if err := w.do(w.rejoinLine(group, id)); err != nil {
			return err
		}
	}
	g, _ := w.m.Group(group)
	if g.State != completingRebalance.String() {
		return nil
	}
	for _, id := range members {
		line := w.syncLine(group, id, a)
		if id == g.Leader {
			ids := []string{id}
			for _, other := range memberIDs(g) {
				if other != id {
					ids = append(ids, other)
				}
			}
			line = w.syncAll(group, ids, a)
		}
		if err := w.do(line); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) rejoinLine(group, id string) string {
	g, _ := w.m.Group(group)
	line := fmt.Sprintf("join group=%s member=%s", group, id)
	for _, m := range g.Members {
		if m.ID == id {
			line += fmt.Sprintf(" session=%v rebalance=%v protocols=(%s)", m.SessionTimeout, m.RebalanceTimeout, strings.Join(m.Protocols, ","))
			if m.InstanceID != nil {
				line += " instance=" + *m.InstanceID
			}
		}
	}
	return line
}

// cmdProbe sends one request of each kind with an identity and prints the errors: heartbeat, sync, both commits, join.
func (w *world) cmdProbe(a *args) error {
	group, id := a.text("group", "g"), a.text("member", "")
	who := fmt.Sprintf("group=%s member=%s generation=%d", group, id, a.number("generation", int64(w.generation(group))))
	instance := a.text("instance", "none")
	if instance != "none" {
		who += " instance=" + instance
	}
	join := strings.Replace(who, "generation=", "as=probe ignored=", 1)
	var b strings.Builder
	for _, line := range []string{"heartbeat " + who + " as=probe", "sync " + who + " as=probe", "commit " + who + " as=probe", "txn-commit " + who + " as=probe", "join " + join} {
		if err := w.quietly(line); err != nil {
			return err
		}
		s := w.names["probe"]
		result := "parked"
		if s.answer != nil {
			result = errorText(errorsIn(s.answer)[0])
		}
		fmt.Fprintf(&b, ", %s: %s", verb(s.req), result)
	}
	w.printf("%s", b.String()[2:])
	return nil
}

// cmdRawRecord puts a record with the given bytes (hexadecimal) into the log, as another coordinator may have.
func (w *world) cmdRawRecord(a *args) error {
	key, err := hex.DecodeString(a.text("key", ""))
	if err != nil {
		return err
	}
	var value []byte
	if a.has("value") {
		if value, err = hex.DecodeString(a.text("value", "")); err != nil {
			return err
		}
	}
	w.log[0] = append(w.log[0], LogRecord{Record: Record{key, value}})
	return nil
}
