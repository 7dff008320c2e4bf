package groupdiff

import (
	"fmt"
	"strings"
)

// parseHand reads a sequence.
func parseHand(text string) ([]request, error) {
	var list []request
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 2 {
			return nil, fmt.Errorf("%q: want kind and client", line)
		}
		r := request{kind: words[0], client: words[1], identity: current}
		switch r.kind {
		case "join":
			r.version, r.offers = 9, offers[0]
		case "sync", "leave", "txn-commit", "describe", "list":
			r.version = 5
		case "heartbeat":
			r.version = 4
		case "commit", "fetch":
			r.version = 9
		case "delete":
			r.version = 2
		}
		if r.kind == "commit" || r.kind == "txn-commit" || r.kind == "offset-delete" {
			r.topic = topicName
		}
		for _, s := range statics {
			if r.client == s {
				r.instance = &r.client
			}
		}
		for _, word := range words[2:] {
			if err := r.option(word); err != nil {
				return nil, fmt.Errorf("%q: %w", strings.TrimSpace(line), err)
			}
		}
		list = append(list, r)
	}
	return list, nil
}

func (r *request) option(word string) error {
	name, value, _ := strings.Cut(word, "=")
	var err error
	switch name {
	case none:
		r.identity = none
	case "identity":
		r.identity = value
	case "version":
		_, err = fmt.Sscan(value, &r.version)
	case "shift":
		_, err = fmt.Sscan(value, &r.shift)
	case "session":
		_, err = fmt.Sscan(value, &r.session)
	case "offset":
		_, err = fmt.Sscan(value, &r.offset)
	case "offers":
		r.offers = strings.FieldsFunc(value, func(c rune) bool { return c == '+' })
	case "metadata":
		r.metadata = value
	case "with":
		r.with = value
	case "of":
		r.of = value
	case "type":
		r.kindOf = value
	case "types":
		r.types = value
	case "more":
		r.more = true
	case "member":
		r.member = true
	case "simple":
		r.simple = true
	case "long":
		r.long = true
	case "all":
		r.all = true
	case "stable":
		r.stable = true
	case "commit":
		r.commit = true
	default:
		err = fmt.Errorf("no option %q", word)
	}
	return err
}

// replay is a sequence that is known beforehand.
func replay(list []request) func(*pair) (request, bool) {
	return func(p *pair) (request, bool) {
		if len(p.sent) == len(list) {
			return request{}, false
		}
		return list[len(p.sent)], true
	}
}
