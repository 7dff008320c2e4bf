package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The output forms of -o.
const (
	formTable = "table"
	formJSON  = "json"
	formText  = "text"
)

// stdio is what a verb reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// terminal is where a verb tells its result, what it notes, and why it failed: in words or in JSON.
type terminal struct {
	stdio
	verb  string
	form  string
	forms []string // that the verb has; the first is the default
}

// flags returns the verb's flag set; synopsis shows its arguments, about says more than the verb table. forms are what -o
// may be; without any there is no -o.
func (t *terminal) flags(synopsis, about string, forms ...string) *flag.FlagSet {
	flags := flag.NewFlagSet(t.verb, flag.ContinueOnError)
	flags.SetOutput(t.err)
	if t.forms = forms; len(forms) > 0 {
		synopsis += " [-o " + strings.Join(forms, "|") + "]"
		flags.StringVar(&t.form, "o", forms[0], "output `form`: "+oneOf(forms))
	}
	flags.Usage = func() {
		fmt.Fprintf(t.err, "usage: millrace %s %s\n\n%s\n\n", t.verb, synopsis, about)
		flags.PrintDefaults()
	}
	return flags
}

// parse reads the flags; arguments that are left over are a mistake.
func (t *terminal) parse(flags *flag.FlagSet, args []string) error {
	arguments, err := t.parseWithArgs(flags, args)
	if err == nil && len(arguments) > 0 {
		err = usagef("unexpected argument %q", arguments[0])
	}
	return err
}

// parseWithArgs is parse for a verb that takes arguments, which it returns; flags may also stand behind them.
func (t *terminal) parseWithArgs(flags *flag.FlagSet, args []string) ([]string, error) {
	var arguments []string
	for {
		if err := flags.Parse(args); err != nil {
			if !errors.Is(err, flag.ErrHelp) {
				err = usageError{} // the flag package has told it
			}
			return nil, err
		}
		if args = flags.Args(); len(args) == 0 {
			break
		}
		arguments, args = append(arguments, args[0]), args[1:]
	}
	if len(t.forms) > 0 && !slices.Contains(t.forms, t.form) {
		form := t.form
		t.form = formText // that of the error
		return nil, usagef("-o is %q: want %s", form, oneOf(t.forms))
	}
	return arguments, nil
}

func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// json writes the result as one indented JSON value.
func (t *terminal) json(v any) error {
	encoder := json.NewEncoder(t.out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// note tells what the user should know beside the result.
func (t *terminal) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if t.form == formJSON {
		t.errJSON(struct {
			Note string `json:"note"`
		}{text})
		return
	}
	fmt.Fprintf(t.err, "note: %s\n", text)
}

// status tells a verb's error, except what has been told already, and turns it into an exit status.
func (t *terminal) status(err error) int {
	usage, isUsage := errors.AsType[usageError](err)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return statusOK
	case isUsage:
		if usage.text != "" {
			t.fail(usage.text, fmt.Sprintf("millrace %s -h tells the flags", t.verb))
		}
		return statusUsage
	case errors.Is(err, errTold):
		return statusFailed
	default:
		t.fail(err.Error(), hint(err))
		return statusFailed
	}
}

// fail tells what is wrong, and what to do if that is known.
func (t *terminal) fail(text, hint string) {
	if t.form == formJSON {
		t.errJSON(struct {
			Error string `json:"error"`
			Hint  string `json:"hint,omitempty"`
		}{text, hint})
		return
	}
	fmt.Fprintf(t.err, "millrace %s: %s\n", t.verb, text)
	if hint != "" {
		fmt.Fprintf(t.err, "hint: %s\n", hint)
	}
}

// errJSON writes one line.
func (t *terminal) errJSON(v any) {
	encoder := json.NewEncoder(t.err)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // there is nowhere else to tell
}

// errTold fails a verb whose output has already said what failed.
var errTold = errors.New("failed")

// usageError says what is wrong with the command line; an empty text has been told by the flag package.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }
