package coordinator

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// run executes one script command and returns what it printed.
func (w *world) run(cmd string, a *args) (string, error) {
	command, err := commandNamed(cmd)
	if err != nil {
		return "", err
	}
	if err = command(w, a); err == nil {
		err = a.err()
	}
	out := w.take()
	if a.bool("quiet") {
		out = ""
	}
	return out, err
}

// commandNamed finds a command by its name or by what the protocol calls the request.
func commandNamed(name string) (func(*world, *args) error, error) {
	if command, ok := commands[spelling(name)]; ok {
		return command, nil
	}
	return nil, fmt.Errorf("there is no such command; there are scenario, %s", strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
}

var commands map[string]func(*world, *args) error

func init() { // a map literal would be an initialisation cycle: base runs other commands
	commands = map[string]func(*world, *args) error{
		"join":          (*world).cmdJoin,
		"sync":          (*world).cmdSync,
		"heartbeat":     (*world).cmdHeartbeat,
		"leave":         (*world).cmdLeave,
		"commit":        (*world).cmdCommit,
		"txn-commit":    (*world).cmdTxnCommit,
		"fetch":         (*world).cmdFetch,
		"offset-delete": (*world).cmdOffsetDelete,
		"describe":      (*world).cmdDescribe,
		"list":          (*world).cmdList,
		"delete":        (*world).cmdDelete,
		"probe":         (*world).cmdProbe,
		"base":          (*world).cmdBase,
		"rejoin":        (*world).cmdRejoin,
		"end-txn":       (*world).cmdEndTxn,
		"topic":         (*world).cmdTopic,
		"delete-topic":  (*world).cmdDeleteTopic,
		"advance":       (*world).cmdAdvance,
		"beat":          (*world).cmdBeat,
		"hold":          (*world).cmdHold,
		"write":         (*world).cmdWrite,
		"release":       (*world).cmdRelease,
		"fail":          (*world).cmdFail,
		"crash":         (*world).cmdCrash,
		"reload":        (*world).cmdReload,
		"unload":        (*world).cmdUnload,
		"loading":       (*world).cmdLoading,
		"load":          (*world).cmdLoad,
		"raw-record":    (*world).cmdRawRecord,
		"show":          (*world).cmdShow,
		"parked":        (*world).cmdParked,
		"log":           (*world).cmdLog,
		"expect":        (*world).cmdExpect,
		"settings":      (*world).cmdSettings,
		"force":         (*world).cmdForce,
	}
}

// single returns the one bare word of a command such as "advance 3s".
func (a *args) single() string {
	for _, name := range a.order {
		if len(a.values[name]) == 0 && name != "profile" && name != "quiet" {
			a.used[name] = true
			return name
		}
	}
	return ""
}

func (w *world) cmdAdvance(a *args) error {
	d, err := time.ParseDuration(a.single())
	if err != nil || d < 0 {
		return fmt.Errorf("want: advance 3s")
	}
	w.advance(d)
	return nil
}

// cmdBeat advances the clock while the named members send heartbeats every second, so that their sessions last.
func (w *world) cmdBeat(a *args) error {
	d := a.duration("for", 0)
	group := a.text("group", "g")
	members := a.list("members")
	for end := w.now.Add(d); w.now.Before(end); {
		w.advance(min(time.Second, end.Sub(w.now)))
		for _, id := range members {
			before := w.take()
			w.heartbeat("", group, id, nil, w.generation(group), 4)
			w.out = before
		}
	}
	return nil
}

func (w *world) cmdHold(*args) error {
	w.hold = true
	return nil
}

func (w *world) cmdWrite(*args) error {
	w.writeHeld(math.MaxUint64)
	return nil
}

// cmdRelease acknowledges one held append, or all of them and holds no more.
func (w *world) cmdRelease(a *args) error {
	id := uint64(a.number("append", 0))
	if id == 0 {
		w.hold = false
		if len(w.held) == 0 {
			return nil
		}
	}
	return w.release(id, nil)
}

func (w *world) cmdFail(a *args) error {
	e, err := errorNamed(a.text("error", "MESSAGE_TOO_LARGE"))
	if err != nil {
		return err
	}
	id := uint64(a.number("append", 0))
	if id == 0 {
		w.hold = false
	}
	return w.release(id, e)
}

func (w *world) cmdCrash(*args) error {
	w.crash()
	return nil
}

func (w *world) cmdReload(a *args) error {
	w.cfg.MaxGroupSize = int(a.number("max-size", int64(w.cfg.MaxGroupSize)))
	if graceful := a.bool("graceful"); a.bool("crash") && !graceful {
		w.crash()
	} else {
		w.unload(w.allPartitions()...)
	}
	w.load(w.allPartitions()...)
	return nil
}

func (w *world) cmdUnload(a *args) error {
	w.unload(w.offsetsPartitions(a)...)
	return nil
}

func (w *world) cmdLoading(a *args) error {
	for _, p := range w.offsetsPartitions(a) {
		w.step(Loading{Partition: p})
	}
	return nil
}

func (w *world) cmdLoad(a *args) error {
	w.load(w.offsetsPartitions(a)...)
	return nil
}

// offsetsPartitions is partition=N, or all of them.
func (w *world) offsetsPartitions(a *args) []int32 {
	if a.has("partition") {
		return []int32{int32(a.number("partition", 0))}
	}
	return w.allPartitions()
}

func (w *world) cmdTopic(a *args) error {
	w.step(TopicChanged{Topic: a.text("name", "t"), ID: topicID(byte(a.number("id", 1))), Partitions: int32(a.number("partitions", 4))})
	return nil
}

func (w *world) cmdDeleteTopic(a *args) error {
	w.step(TopicDeleted{Topic: a.text("name", "t")})
	return nil
}

func (w *world) cmdEndTxn(a *args) error {
	ev := TxnEnded{ProducerID: a.number("producer", 1), ProducerEpoch: int16(a.number("epoch", a.number("producer-epoch", 0))), Commit: a.bool("commit")}
	if !ev.Commit && !a.bool("abort") {
		return fmt.Errorf("say commit or abort")
	}
	w.endTxn(ev)
	return nil
}

// errorNames are Kafka's present names of errors that answers are printed with by their first ones.
var errorNames = map[string]string{
	"RECORD_TOO_LARGE":       kerr.MessageTooLarge.Message,
	"NOT_LEADER_OR_FOLLOWER": kerr.NotLeaderForPartition.Message,
}

// errorNamed finds an error by its code or by Kafka's name.
func errorNamed(s string) (*kerr.Error, error) {
	if strings.EqualFold(s, "none") || strings.EqualFold(s, "ok") {
		return nil, nil
	}
	var n int16
	if _, err := fmt.Sscan(s, &n); err == nil {
		if n == 0 {
			return nil, nil
		}
		if e, ok := kerr.ErrorForCode(n).(*kerr.Error); ok && e.Code == n {
			return e, nil
		}
	}
	s = strings.ToUpper(s)
	if kgoName, ok := errorNames[s]; ok {
		s = kgoName
	}
	for n := int16(-1); n < 200; n++ {
		if e, ok := kerr.ErrorForCode(n).(*kerr.Error); ok && e.Message == s {
			return e, nil
		}
	}
	return nil, fmt.Errorf("%q is not the code or the name of a Kafka error", s)
}
