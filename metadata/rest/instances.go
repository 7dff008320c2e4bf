package rest

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

const (
	scopeLocal = "local"
	scopeGroup = "group"
	formatJSON = "json"
	formatText = "text"
)

func (s *server) metadataRoutes(r chi.Router) { r.Get("/v1/metadata", s.metadata) }
func (s *server) instanceRoutes(r chi.Router) { r.Get("/v1/instances", s.instances) }
func (s *server) threadRoutes(r chi.Router)   { r.Get("/v1/threads", s.threads) }
func (s *server) topologyRoutes(r chi.Router) { r.Get("/v1/topology", s.topology) }

func (s *server) metadata(w http.ResponseWriter, r *http.Request) {
	if _, ok := parseQuery(w, r); !ok {
		return
	}
	if snapshot, ok := s.snapshot(w, r); ok {
		writeJSON(w, http.StatusOK, newMetadata(snapshot, s.q.State(), s.now()))
	}
}

// instances lists group members: by default those of this process, which it knows without asking the coordinator.
func (s *server) instances(w http.ResponseWriter, r *http.Request) {
	q, ok := parseQuery(w, r, param{"scope", []string{scopeLocal, scopeGroup}}, param{"format", []string{formatJSON, formatText}})
	if !ok {
		return
	}
	var answer InstancesResponse
	if q["scope"] == scopeGroup {
		snapshot, ok := s.snapshot(w, r)
		if !ok {
			return
		}
		answer = GroupInstances(snapshot, s.now())
	} else {
		answer = LocalInstances(s.q.Process(), s.q.Threads())
	}
	if q["format"] == formatText {
		write(w, http.StatusOK, "text/plain; charset=utf-8", []byte(answer.Text()))
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

func (s *server) threads(w http.ResponseWriter, r *http.Request) {
	if _, ok := parseQuery(w, r); ok {
		writeJSON(w, http.StatusOK, ThreadsResponse{State: s.q.State(), Threads: newThreads(s.q.Threads())})
	}
}

// topology is text unless asked otherwise: it is made for eyes, and for tools that draw Kafka Streams topologies from it.
func (s *server) topology(w http.ResponseWriter, r *http.Request) {
	q, ok := parseQuery(w, r, param{"format", []string{formatText, formatJSON}})
	if !ok {
		return
	}
	if q["format"] == formatJSON {
		writeJSON(w, http.StatusOK, map[string]string{"topology": s.q.Topology()})
		return
	}
	write(w, http.StatusOK, "text/plain; charset=utf-8", []byte(s.q.Topology()))
}
