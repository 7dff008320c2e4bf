package rest

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// States that health depends on: Kafka Streams' names of an application's and a stream thread's states.
const (
	stateRunning    = "RUNNING"
	stateError      = "ERROR"
	stateNotRunning = "NOT_RUNNING"
	stateDead       = "DEAD"
)

// HealthResponse is the answer of /livez and /readyz when all is well.
type HealthResponse struct {
	Status string `json:"status"`
	State  string `json:"state"`
}

func (s *server) healthRoutes(r chi.Router) {
	r.Get("/livez", s.livez)
	r.Get("/readyz", s.readyz)
}

// metricRoutes compresses nothing: a scrape is some kilobytes, and most come over loopback or a local network. The
// gatherer is asked for at each scrape, because the handler may be older than what has the metrics.
func (s *server) metricRoutes(r chi.Router) {
	r.Get("/metrics", func(w http.ResponseWriter, req *http.Request) {
		promhttp.HandlerFor(s.q.Gatherer(), promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(w, req)
	})
}

// livez fails when only a restart of the process helps: a thread is dead, or the application has ended. A rebalance or a
// restore, however long, is life.
func (s *server) livez(w http.ResponseWriter, _ *http.Request) {
	state := s.q.State()
	if state == stateError || state == stateNotRunning {
		writeError(w, CodeNotLive, "the application is in state %s", state)
		return
	}
	for _, t := range s.q.Threads() {
		if t.State == stateDead {
			writeError(w, CodeNotLive, "stream thread %s is dead", t.Name)
			return
		}
	}
	writeJSON(w, http.StatusOK, HealthResponse{Status: "ok", State: state})
}

// readyz succeeds in RUNNING only: then every assigned task is restored and processes.
func (s *server) readyz(w http.ResponseWriter, _ *http.Request) {
	if state := s.q.State(); state != stateRunning {
		writeError(w, CodeNotReady, "the application is in state %s, not %s", state, stateRunning)
		return
	}
	writeJSON(w, http.StatusOK, HealthResponse{Status: "ok", State: stateRunning})
}
