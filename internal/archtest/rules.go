package archtest

// A level groups packages that stand equally high. A package may import packages of its own module only from lower
// levels, or those that its level names as siblings.
type level struct {
	name     string
	packages []string
	siblings map[string][]string // package -> packages of the same level that it may import
	why      string
}

// levels is the picture of the module, bottom first.
var levels = []level{
	{
		name: "names, bytes and pure functions",
		packages: []string{
			"internal/taskid", "internal/murmur2", "internal/archtest",
			"streams/serde", "streams/serde/serdetest", "streams/window", "statestore", "membership/codec", "membership/assign", "membership/coordinator",
		},
		siblings: map[string][]string{
			"statestore":              {"internal/taskid"},
			"membership/codec":        {"internal/taskid"},
			"membership/assign":       {"internal/taskid"},
			"streams/window":          {"streams/serde"},
			"streams/serde":           {"streams/window"},
			"streams/serde/serdetest": {"streams/serde"},
		},
		why: "the leaves must be usable, and testable, without anything above them",
	},
	{
		name:     "plans, engines and the member machine",
		packages: []string{"internal/topology", "statestore/memstore", "statestore/pebblestore", "statestore/storetest", "membership", "integration/cluster"},
		siblings: map[string][]string{"statestore/storetest": {"statestore/memstore", "statestore/pebblestore"}},
		why:      "a machine plans or decides; who carries it out stands above it",
	},
	{
		name:     "tasks, the group driver and metadata",
		packages: []string{"thread/task", "membership/classic", "membership/membershiptest", "metadata", "integration/cluster/admin"},
		why:      "each turns one plan into one kind of work, and none knows another's work",
	},
	{
		name:     "the stream thread and the REST side",
		packages: []string{"thread", "metadata/rest"},
		why:      "thread and metadata are siblings that only streams wires together, so either can be replaced",
	},
	{
		name:     "the public face",
		packages: []string{"streams"},
		why:      "one composition root; nothing below may know the DSL",
	},
	{
		name:     "programs and harnesses",
		packages: []string{"streams/streamstest", "cmd/...", "examples/...", "integration/..."},
		siblings: map[string][]string{
			"integration/...":     {"integration/...", "examples/..."},
			"examples/...":        {"examples/...", "streams/streamstest"},
			"cmd/...":             {"cmd/..."},
			"streams/streamstest": {},
		},
		why: "programs use the library; the library never knows a program",
	},
}

// An outside rule says which packages may import a foreign module.
type outside struct {
	module  string   // import path prefix
	allowed []string // package patterns
	why     string
}

var outsideRules = []outside{
	{
		module:  "github.com/cockroachdb/pebble",
		allowed: []string{"statestore/pebblestore", "statestore/storetest"},
		why:     "the engine must be replaceable, and its runtime tricks break with new Go versions: one package to mend",
	},
	{
		module:  "github.com/go-chi/chi",
		allowed: []string{"metadata/rest"},
		why:     "the router is a detail of the REST side",
	},
	{
		module:  "github.com/twmb/franz-go/pkg/kfake",
		allowed: []string{"integration/cluster"},
		why:     "production code must never depend on the embedded broker",
	},
	{
		module:  "github.com/twmb/franz-go/pkg/kgo",
		allowed: []string{"thread", "membership/classic", "metadata", "streams", "integration/...", "cmd/...", "examples/..."},
		why:     "Kafka is reached at the rim only: tasks, stores, topology and the machines must run without a client",
	},
	{
		module:  "github.com/magiconair/properties",
		allowed: []string{"cmd/millrace/clientconfig"},
		why:     "Java's properties are an operator's way in; the library is configured in Go",
	},
	{
		module:  "software.sslmate.com/src/go-pkcs12",
		allowed: []string{"cmd/millrace/clientconfig"},
		why:     "Java's key stores are an operator's way in; the library takes a tls.Config",
	},
	{
		module:  "github.com/prometheus/client_golang",
		allowed: []string{"thread", "streams", "metadata/rest", "integration/..."},
		why:     "metrics are published at the rim; the pure middle counts in plain integers",
	},
}

// purePackages take values and return values; time is an argument and IO is somebody else's job.
var purePackages = []string{
	"internal/taskid", "internal/murmur2", "internal/topology", "thread/task", "streams/window",
	"membership", "membership/codec", "membership/assign", "membership/coordinator",
}

// bannedImports names what a pure package may not import, each with its remedy.
var bannedImports = map[string]string{
	"net":            "pass the address as a string",
	"net/http":       "put the request into the driver above",
	"os":             "let the owner read it and pass the value",
	"log":            "return an error or an action; the owner logs",
	"log/slog":       "return an error or an action; the owner logs",
	"sync":           "one goroutine owns the machine; hand values over instead of sharing them",
	"sync/atomic":    "one goroutine owns the machine; let the owner publish a snapshot",
	"math/rand":      "take the random value as an input",
	"math/rand/v2":   "take the random value as an input",
	"crypto/rand":    "take the random value as an input",
	"runtime/pprof":  "profile from outside",
	"context":        "a pure function has nothing to cancel",
	"testing/iotest": "belongs into a test",
}

// bannedTimeFuncs are the functions of package time that read or wait for a clock.
var bannedTimeFuncs = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
