package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// param is one query parameter: the values that it may have, the first of which is the default.
type param struct {
	name   string
	values []string
}

// parseQuery reads the parameters that a path knows. On failure it has answered: an unknown name is an error too, because a
// typing mistake that is silently ignored gives an answer to another question.
func parseQuery(w http.ResponseWriter, r *http.Request, params ...param) (map[string]string, bool) {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		writeError(w, CodeInvalidParameter, "the query %s cannot be read: %v", shown(r.URL.RawQuery), err)
		return nil, false
	}
	values := map[string]string{}
	for _, p := range params {
		values[p.name] = p.values[0]
		got, ok := given[p.name]
		delete(given, p.name)
		switch {
		case !ok:
		case len(got) > 1:
			writeError(w, CodeInvalidParameter, "parameter %s is given %d times", p.name, len(got))
			return nil, false
		case !slices.Contains(p.values, got[0]):
			writeError(w, CodeInvalidParameter, "parameter %s is %s: want %s", p.name, shown(got[0]), strings.Join(p.values, " or "))
			return nil, false
		default:
			values[p.name] = got[0]
		}
	}
	for name := range given {
		writeError(w, CodeInvalidParameter, "unknown parameter %s: this path knows %s", shown(name), names(params))
		return nil, false
	}
	return values, true
}

func names(params []param) string {
	if len(params) == 0 {
		return "none"
	}
	all := make([]string, 0, len(params))
	for _, p := range params {
		all = append(all, p.name)
	}
	return strings.Join(all, ", ")
}

// shown quotes what a client sent, shortened, so that an error message holds no control characters and no megabytes.
func shown(s string) string {
	const most = 100
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return strconv.QuoteToASCII(s)
}
