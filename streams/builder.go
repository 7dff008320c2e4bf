package streams

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-io/millrace/internal/topology"
	"github.com/millrace-io/millrace/statestore"
	"github.com/millrace-io/millrace/streams/serde"
)

// Builder collects the operators of a topology. It belongs to one goroutine. Mistakes are collected, too, and reported all
// together, each with the line of the program, when the topology is built.
//
// The functions given to operators are shared by all tasks and run concurrently in different stream threads: they must
// be pure, or synchronise themselves.
type Builder struct {
	graph     topology.Graph
	generated bool
}

// NewBuilder returns an empty topology.
func NewBuilder(opts ...BuilderOption) *Builder {
	b := new(Builder)
	for _, o := range opts {
		o(b)
	}
	return b
}

// Build validates and plans the topology for an application. [New] does it; call it to look at a plan without running
// it. The error joins all mistakes.
func (b *Builder) Build(appID string) (*topology.Plan, error) { return b.graph.Build(appID) }

// Describe returns the topology in Kafka's text format.
func (b *Builder) Describe() (string, error) {
	plan, err := b.Build("describe")
	if err != nil {
		return "", err
	}
	return plan.Describe(), nil
}

// name returns the operator's name: the user's, or a generated one. The counter moves in both cases, so that naming one
// operator does not rename the others.
func (b *Builder) name(given, prefix string) string {
	generated := b.graph.NewName(prefix)
	if given != "" {
		return given
	}
	return generated
}

// node begins a node of an operator that the user called.
func (b *Builder) node(operator, given, prefix string) topology.Node {
	return topology.Node{Kind: topology.Processor, Name: b.name(given, prefix), Operator: operator, Call: call()}
}

// fail keeps a mistake.
func (b *Builder) fail(operator string, format string, args ...any) {
	b.graph.Fail(call(), operator, fmt.Errorf(format, args...))
}

// functions keeps the mistake of an operator that lacks one of its functions: each argument says whether one is nil.
func (b *Builder) functions(operator string, missing ...bool) {
	if slices.Contains(missing, true) {
		b.fail(operator, "needs a function, got nil")
	}
}

// storeName returns the name of a stateful operator's store.
func (b *Builder) storeName(operator, given, prefix string) string {
	if given != "" {
		return given
	}
	if !b.generated {
		b.fail(operator, "needs a name for its store: %s(%q, …), or generated names by the builder option GeneratedNames", operator, "name")
	}
	return b.graph.NewName(prefix + "STATE-STORE-")
}

func (b *Builder) addStore(spec statestore.Spec) {
	b.graph.AddStore(topology.Store{Spec: spec, Call: call()})
}

// need returns the serde that an operator has to have: the given one, the inherited one or the type's default.
func need[T any](b *Builder, operator, what string, candidates ...serde.Serde[T]) serde.Serde[T] {
	for _, s := range candidates {
		if s != nil {
			return s
		}
	}
	if s, ok := serde.Default[T](); ok {
		return s
	}
	b.fail(operator, "needs %s serde for %v: pass one, such as serde.JSON[%v]()", article(what), reflect.TypeFor[T](), reflect.TypeFor[T]())
	return missing[T]{}
}

func article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeiou") {
		return "an " + noun
	}
	return "a " + noun
}

// inherit carries a serde over to a result: it stays while the type stays.
func inherit[W, V any](s serde.Serde[V]) serde.Serde[W] {
	same, _ := s.(serde.Serde[W])
	return same
}

// missing takes the place of a serde that a failed operator lacks. The topology cannot be built, so it never runs.
type missing[T any] struct{}

var errMissing = errors.New("no serde")

func (missing[T]) Append(dst []byte, _ T) ([]byte, error) { return dst, errMissing }
func (missing[T]) Decode([]byte) (v T, err error)         { return v, errMissing }

// call returns file and line of the user's call: the first frame outside of this package.
func call() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		inside := strings.HasPrefix(frame.Function, packagePath+".") && !strings.HasSuffix(frame.File, "_test.go")
		if !inside || !more {
			return filepath.Base(frame.File) + ":" + strconv.Itoa(frame.Line)
		}
	}
}

var packagePath = reflect.TypeFor[Builder]().PkgPath()
