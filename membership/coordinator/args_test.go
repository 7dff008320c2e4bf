package coordinator

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
)

// args are the arguments of a script command. Reading one marks it as known, so that a misspelt one is found.
type args struct {
	values map[string][]string
	order  []string
	used   map[string]bool
	errs   []string
}

func newArgs(list []datadriven.CmdArg) *args {
	a := &args{values: make(map[string][]string), used: make(map[string]bool)}
	for _, arg := range list {
		name := spelling(arg.Key)
		a.values[name] = arg.Vals
		a.order = append(a.order, name)
	}
	return a
}

// spellings are what the protocol calls the commands and arguments whose names here are shorter.
var spellings = map[string]string{
	"joingroup": "join", "syncgroup": "sync", "hb": "heartbeat", "leavegroup": "leave",
	"offsetcommit": "commit", "txnoffsetcommit": "txn-commit", "txncommit": "txn-commit", "offsetfetch": "fetch", "offsetdelete": "offset-delete",
	"describegroups": "describe", "listgroups": "list", "deletegroups": "delete", "endtxn": "end-txn",
	"groupid": "group", "memberid": "member", "instanceid": "instance", "groupinstanceid": "instance", "generationid": "generation", "gen": "generation",
	"sessiontimeout": "session", "rebalancetimeout": "rebalance", "protocoltype": "type", "clientid": "client", "clienthost": "host",
	"requirestable": "stable", "errorcode": "error", "assignments": "assign", "skipassignment": "skip", "producerid": "producer",
	"sessiontimeoutms": "session", "rebalancetimeoutms": "rebalance", "protocolname": "protocol", "transactionalid": "txn", "producerepoch": "producer-epoch",
	"heartbeat": "heartbeat", "forcerebalance": "force", "registrationtimeout": "registration", "expansiontimeout": "expansion",
	"expectedinstanceids": "expected", "targetsize": "target", "refuseunexpected": "refuse-unexpected", "sparesession": "spare-session", "groupmaxsize": "max-size", "initialrebalancedelay": "delay",
}

// separators are what the spelling of a name may have or lack.
var separators = strings.NewReplacer("-", "", "_", "", ".", "")

// spelling is the name used here of what a script calls so: in any case, with dashes, dots or neither.
func spelling(name string) string {
	if short, ok := spellings[separators.Replace(strings.ToLower(name))]; ok {
		return short
	}
	return strings.ReplaceAll(name, "_", "-")
}

func (a *args) unused() []string {
	var names []string
	for _, name := range a.order {
		if !a.used[name] {
			names = append(names, name)
		}
	}
	return names
}

// err returns what was wrong with the values read so far.
func (a *args) err() error {
	if len(a.errs) == 0 {
		return nil
	}
	msg := strings.Join(a.errs, "; ")
	a.errs = nil
	return fmt.Errorf("%s", msg)
}

func (a *args) has(name string) bool {
	a.used[name] = true
	_, ok := a.values[name]
	return ok
}

func (a *args) bool(name string) bool { return a.has(name) && a.text(name, "true") != "false" }

func (a *args) text(name, def string) string {
	if !a.has(name) || len(a.values[name]) == 0 {
		return def
	}
	return strings.Trim(strings.Join(a.values[name], ","), `"`)
}

func (a *args) list(name string, def ...string) []string {
	if !a.has(name) {
		return def
	}
	var list []string
	for _, v := range a.values[name] {
		if v = strings.TrimSpace(v); v != "" {
			list = append(list, strings.Trim(v, `"`))
		}
	}
	return list
}

func (a *args) number(name string, def int64) int64 {
	s := a.text(name, "")
	if s == "" {
		return def
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		a.errs = append(a.errs, fmt.Sprintf("%s=%s is not a number", name, s))
	}
	return n
}

func (a *args) duration(name string, def time.Duration) time.Duration {
	s := a.text(name, "")
	if s == "" {
		return def
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		a.errs = append(a.errs, fmt.Sprintf("%s=%s is not a duration like 3s", name, s))
	}
	return d
}

// optional is a string that may be absent: nil unless given, and nil if given as "none".
func (a *args) optional(name string) *string {
	if !a.has(name) {
		return nil
	}
	s := a.text(name, "")
	if s == "none" {
		return nil
	}
	return &s
}

// cut splits "name:rest" at the first colon.
func cut(s string) (string, string) {
	name, rest, _ := strings.Cut(s, ":")
	return name, rest
}
