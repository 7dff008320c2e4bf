package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/millrace-io/millrace/integration/cluster"
	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kerr"
)

// maxBody bounds what a request may send: ten thousand instance ids of full length fit.
const maxBody = 4 << 20

// Cluster is what the handler serves; *cluster.Cluster is one.
type Cluster interface {
	Groups(ctx context.Context) ([]string, error)
	Group(ctx context.Context, group string) (coordinator.Group, bool, error)
	GroupSettings(group string) coordinator.Settings
	ConfigureGroup(ctx context.Context, group string, settings coordinator.Settings, removeNow bool) error
	ForceRebalance(ctx context.Context, group string, deadline time.Duration) (cluster.MembershipChange, error)
}

// Handler serves /admin/v1. It keeps no state; the cluster may be closed before the server.
func Handler(c Cluster) http.Handler {
	h := handler{c}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /admin/v1/groups", serve(h.list))
	mux.HandleFunc("GET /admin/v1/groups/{group}", serve(h.group))
	mux.HandleFunc("GET /admin/v1/groups/{group}/settings", serve(h.settings))
	mux.HandleFunc("PUT /admin/v1/groups/{group}/settings", serve(h.configure))
	mux.HandleFunc("PUT /admin/v1/groups/{group}/expected-instances", serve(h.expect))
	mux.HandleFunc("POST /admin/v1/groups/{group}/force-rebalance", serve(h.force))
	mux.HandleFunc("/", serve(func(r *http.Request) (any, error) {
		return nil, &statusError{http.StatusNotFound, fmt.Sprintf("there is no %s %s; see /admin/v1/groups", r.Method, r.URL.Path)}
	}))
	return mux
}

type handler struct{ cluster Cluster }

// statusError is an error that the request is to blame for.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

// serve makes an HTTP handler of a function that returns the answer.
func serve(fn func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := fn(r)
		status := http.StatusOK
		if err != nil {
			status, answer = refusal(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(answer) // the client is gone if this fails
	}
}

func refusal(err error) (int, *Error) {
	if refused, ok := errors.AsType[*cluster.GroupError](err); ok {
		status := http.StatusConflict
		if errors.Is(err, kerr.GroupIDNotFound) {
			status = http.StatusNotFound
		}
		return status, &Error{refused.Error(), refused.Err.Code, refused.Err.Message}
	}
	if bad, ok := errors.AsType[*statusError](err); ok {
		return bad.status, &Error{Text: bad.text}
	}
	return http.StatusInternalServerError, &Error{Text: err.Error()}
}

// read decodes a body. Unknown fields are mistakes, and so is what follows: a setting must not be off in silence because it is
// misspelt or out of reach.
func read(r *http.Request, into any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return &statusError{http.StatusUnsupportedMediaType, "the body must be application/json"}
	}
	raw, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return &statusError{http.StatusBadRequest, "the body cannot be read: " + err.Error()}
	}
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) { // null would be decoded, and turn everything off
		return &statusError{http.StatusBadRequest, "the body must be a JSON object"}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &statusError{http.StatusBadRequest, "the body cannot be read: " + err.Error()}
	}
	if _, err := d.Token(); err != io.EOF {
		return &statusError{http.StatusBadRequest, "the body cannot be read: something follows the JSON object"}
	}
	return nil
}

func (h handler) list(r *http.Request) (any, error) {
	ids, err := h.cluster.Groups(r.Context())
	if err != nil {
		return nil, err
	}
	out := Groups{Groups: []Summary{}}
	for _, id := range ids {
		g, ok, err := h.cluster.Group(r.Context(), id)
		if err != nil {
			return nil, err
		}
		if ok {
			out.Groups = append(out.Groups, Summary{g.ID, g.State, g.Generation, len(g.Members)})
		}
	}
	return out, nil
}

func (h handler) group(r *http.Request) (any, error) {
	id := r.PathValue("group")
	g, ok, err := h.cluster.Group(r.Context(), id)
	if err == nil && !ok {
		err = &statusError{http.StatusNotFound, fmt.Sprintf("there is no group %q", id)}
	}
	return groupOf(g), err
}

func (h handler) settings(r *http.Request) (any, error) {
	return settingsOf(h.cluster.GroupSettings(r.PathValue("group"))), nil
}

func (h handler) configure(r *http.Request) (any, error) {
	var s Settings
	if err := read(r, &s); err != nil {
		return nil, err
	}
	return h.store(r, s.coordinator(), false)
}

func (h handler) expect(r *http.Request) (any, error) {
	var e Expected
	if err := read(r, &e); err != nil {
		return nil, err
	}
	s := h.cluster.GroupSettings(r.PathValue("group"))
	s.Expected, s.RefuseUnexpected = e.InstanceIDs, e.RefuseOthers
	return h.store(r, s, e.RemoveNow)
}

// store validates first, so that what is left to go wrong is not the request's fault.
func (h handler) store(r *http.Request, s coordinator.Settings, removeNow bool) (any, error) {
	if err := s.Validate(); err != nil {
		return nil, &statusError{http.StatusBadRequest, err.Error()}
	}
	if err := h.cluster.ConfigureGroup(r.Context(), r.PathValue("group"), s, removeNow); err != nil {
		return nil, err
	}
	return settingsOf(s), nil
}

func (h handler) force(r *http.Request) (any, error) {
	var f Force
	if err := read(r, &f); err != nil {
		return nil, err
	}
	if f.Deadline < 0 {
		return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("deadline is %v: want 0 (the rebalance timeout) or more", time.Duration(f.Deadline))}
	}
	change, err := h.cluster.ForceRebalance(r.Context(), r.PathValue("group"), time.Duration(f.Deadline))
	return Change{change.Before, change.After, orEmpty(change.Removed), orEmpty(change.Kept)}, err
}
