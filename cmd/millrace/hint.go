package main

import "errors"

// hinted is an error with what to do about it.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// hint is what to do about an error, "" if that is not known.
func hint(err error) string {
	if h, ok := errors.AsType[hinted](err); ok {
		return h.hint
	}
	return ""
}
