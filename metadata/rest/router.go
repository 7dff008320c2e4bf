package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-io/millrace/metadata"
)

// Querier is what the handlers ask; streams.App is one. Methods are called from many goroutines at once and must not wait
// for a stream thread.
type Querier interface {
	// State is the application's state under Kafka Streams' names: CREATED, REBALANCING, RUNNING, PENDING_SHUTDOWN, …
	State() string
	// Process says who answers.
	Process() metadata.Process
	// Threads is what the stream threads last published.
	Threads() []metadata.ThreadStatus
	// Metadata is a snapshot of the group with the answering process marked (see [metadata.Snapshot.WithLocal]); it may
	// ask the group coordinator, within ctx.
	Metadata(ctx context.Context) (metadata.Snapshot, error)
	// Topology is the topology in Kafka's text form.
	Topology() string
	// Gatherer holds the application's metrics.
	Gatherer() prometheus.Gatherer
}

// askTimeout bounds how long a request waits for the group coordinator.
const askTimeout = 5 * time.Second

// server holds what the handlers need.
type server struct {
	q   Querier
	now func() time.Time
}

// Handler serves q. It may be mounted below a prefix with [http.StripPrefix].
func Handler(q Querier) http.Handler { return newHandler(q, time.Now) }

func newHandler(q Querier, now func() time.Time) http.Handler {
	s := &server{q: q, now: now}
	r := chi.NewRouter()
	r.Use(recoverPanics, middleware.GetHead)
	r.NotFound(func(w http.ResponseWriter, r *http.Request) {
		writeError(w, CodeNotFound, "no such path: %s; there are / /v1/metadata /v1/instances /v1/threads /v1/topology /livez /readyz /metrics", shown(r.URL.Path))
	})
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", "GET, HEAD")
		writeError(w, CodeMethodNotAllowed, "method %s is not allowed: use GET", shown(r.Method))
	})
	s.pageRoutes(r)
	s.metadataRoutes(r)
	s.instanceRoutes(r)
	s.threadRoutes(r)
	s.topologyRoutes(r)
	s.healthRoutes(r)
	s.metricRoutes(r)
	return r
}

// recoverPanics turns a bug in a handler into an answer. [http.ErrAbortHandler] is the server's own and passes.
func recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p)
			default:
				writeError(w, CodeInternal, "a handler failed: %v", p)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// snapshot asks for the group within the time limit; on failure it has answered.
func (s *server) snapshot(w http.ResponseWriter, r *http.Request) (metadata.Snapshot, bool) {
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	snapshot, err := s.q.Metadata(ctx)
	if err != nil {
		writeError(w, CodeUnavailable, "the group coordinator could not be asked: %v", err)
		return metadata.Snapshot{}, false
	}
	return snapshot, true
}
