package streamstest_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// The named pure functions of the vectors. A panic stands for Java's exception: a null where a value is needed, a cast, a
// number that is none.

// function is a named function with its argument.
type function struct{ name, arg string }

// fn reads a field that names a function: a text, or an object with an argument.
func (s statement) fn(field string) function {
	if name, ok := s[field].(string); ok {
		return function{name: name}
	}
	f := s.sub(field)
	return function{name: f.text("name"), arg: f.text("arg")}
}

// notCovered is the panic value that ends the building of a topology which needs something that does not exist.
type notCovered string

func (f function) unknown(catalogue string) notCovered {
	return notCovered(catalogue + " function " + f.name)
}

var errBoom = errors.New("boom")

// show renders a value as Java's string concatenation does.
func show(v any) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(v)
}

type predicate func(k, v any) bool

func (f function) predicate() predicate {
	limit := func() int64 {
		n, err := strconv.ParseInt(f.arg, 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	switch f.name {
	case "value_starts_with":
		return func(_, v any) bool { return v != nil && strings.HasPrefix(v.(string), f.arg) }
	case "value_gt":
		return func(_, v any) bool { return v.(int64) > limit() }
	case "value_length_gt":
		return func(_, v any) bool { return length(v) > limit() }
	case "key_equals":
		return func(k, _ any) bool { return k == any(f.arg) }
	case "true":
		return func(_, _ any) bool { return true }
	case "false":
		return func(_, _ any) bool { return false }
	case "value_not_null":
		return func(_, v any) bool { return v != nil }
	}
	panic(f.unknown("predicate"))
}

// mapper makes a value of a key and a value; out is the kind of the result for the kinds of both.
type mapper struct {
	apply func(k, v any) any
	out   func(key, value kind) kind
}

func ofKey(key, _ kind) kind     { return key }
func ofValue(_, value kind) kind { return value }
func ofString(_, _ kind) kind    { return kindString }
func ofInt64(_, _ kind) kind     { return kindInt64 }

func (f function) mapper() mapper {
	switch f.name {
	case "upper":
		return mapper{func(_, v any) any { return strings.ToUpper(v.(string)) }, ofString}
	case "append":
		return mapper{func(_, v any) any { return show(v) + f.arg }, ofString}
	case "length":
		return mapper{func(_, v any) any { return length(v) }, ofInt64}
	case "identity", "value":
		return mapper{func(_, v any) any { return v }, ofValue}
	case "key":
		return mapper{func(k, _ any) any { return k }, ofKey}
	case "null":
		return mapper{func(_, _ any) any { return nil }, ofValue}
	case "null_if_equals":
		return mapper{func(_, v any) any { return nullIf(needed(v) == any(f.arg), v) }, ofValue}
	case "first_char":
		return mapper{func(_, v any) any { return firstChar(v) }, ofString}
	case "before_colon":
		return mapper{func(_, v any) any { return beforeColon(v) }, ofString}
	case "after_colon":
		return mapper{func(_, v any) any { return afterColon(v) }, ofString}
	case "parse_int":
		return mapper{func(_, v any) any { return parseInt(v) }, ofInt64}
	case "key_value":
		return mapper{func(k, v any) any { return show(k) + "=" + show(v) }, ofString}
	case "const":
		return mapper{func(_, _ any) any { return f.arg }, ofString}
	case "show":
		return mapper{func(_, v any) any { return "<" + show(v) + ">" }, ofString}
	case "key_first_char":
		return mapper{func(k, _ any) any { return firstChar(k) }, ofString}
	case "key_before_colon":
		return mapper{func(k, _ any) any { return beforeColon(needed(k)) }, ofString}
	case "format":
		return mapper{func(_, v any) any { return show(v) }, ofString}
	case "throw_if_equals":
		return mapper{func(_, v any) any {
			if needed(v) == any(f.arg) {
				panic(errBoom)
			}
			return v
		}, ofValue}
	}
	panic(f.unknown("value"))
}

// needed is what calling a method on a value does in Java: a null has none.
func needed(v any) any {
	if v == nil {
		panic("null pointer")
	}
	return v
}

func nullIf(null bool, v any) any {
	if null {
		return nil
	}
	return v
}

// length counts as Java does, in UTF-16 units.
func length(v any) int64 { return int64(len(utf16.Encode([]rune(v.(string))))) }

func firstChar(v any) any {
	if v == nil || v == any("") {
		return nil
	}
	return string([]rune(v.(string))[:1])
}

func beforeColon(v any) any {
	if v == nil {
		return nil
	}
	before, _, found := strings.Cut(v.(string), ":")
	return nullIf(!found, before)
}

func afterColon(v any) any {
	if _, after, found := strings.Cut(v.(string), ":"); found {
		return after
	}
	return v
}

func parseInt(v any) any {
	n, err := strconv.ParseInt(v.(string), 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// pair makes a key and a value.
type pair struct {
	apply      func(k, v any) (any, any)
	key, value func(key, value kind) kind
}

func (f function) pair() pair {
	switch f.name {
	case "swap", "value_key":
		return pair{func(k, v any) (any, any) { return v, k }, ofValue, ofKey}
	case "value_as_key":
		return pair{func(_, v any) (any, any) { return v, v }, ofValue, ofValue}
	case "before_after_colon":
		return pair{func(_, v any) (any, any) { return beforeColon(v), afterColon(v) }, ofString, ofString}
	case "null_key":
		return pair{func(_, v any) (any, any) { return nil, v }, ofKey, ofValue}
	case "first_char_value":
		return pair{func(_, v any) (any, any) { return firstChar(v), v }, ofString, ofValue}
	case "before_colon_int":
		return pair{func(_, v any) (any, any) { return beforeColon(v), parseInt(afterColon(v)) }, ofString, ofInt64}
	}
	panic(f.unknown("pair"))
}

// aggregator folds a value into an aggregate.
func (f function) aggregator() func(k, v, aggregate any) any {
	switch f.name {
	case "concat":
		return func(_, v, a any) any { return show(a) + show(v) }
	case "concat_key":
		return func(k, v, a any) any { return show(a) + show(k) + show(v) }
	case "sum":
		return func(_, v, a any) any { return a.(int64) + v.(int64) }
	case "sum_sub":
		return func(_, v, a any) any { return a.(int64) - v.(int64) }
	case "count":
		return func(_, _, a any) any { return a.(int64) + 1 }
	case "add":
		return func(_, v, a any) any { return show(a) + "+" + show(v) }
	case "sub":
		return func(_, v, a any) any { return show(a) + "-" + show(v) }
	case "to_null_if_value":
		return func(_, v, a any) any { return nullIf(needed(v) == any(f.arg), show(a)+show(v)) }
	}
	panic(f.unknown("aggregator"))
}

// reducer combines an aggregate and a value of the same type.
func (f function) reducer() func(aggregate, value any) any {
	switch f.name {
	case "concat":
		return func(a, v any) any { return show(a) + show(v) }
	case "sum":
		return func(a, v any) any { return a.(int64) + v.(int64) }
	case "sum_sub":
		return func(a, v any) any { return a.(int64) - v.(int64) }
	case "max":
		return func(a, v any) any { return max(a.(int64), v.(int64)) }
	case "last":
		return func(_, v any) any { return v }
	case "add":
		return func(a, v any) any { return show(a) + "+" + show(v) }
	case "sub":
		return func(a, v any) any { return show(a) + "-" + show(v) }
	case "null":
		return func(_, _ any) any { return nil }
	}
	panic(f.unknown("reducer"))
}

// words is what flat_map and flat_map_values split at.
func words(v any) []any {
	var all []any
	for word := range strings.SplitSeq(v.(string), " ") {
		if word != "" {
			all = append(all, word)
		}
	}
	return all
}
