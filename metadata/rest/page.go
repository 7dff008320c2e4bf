package rest

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"join": strings.Join}).Parse(pageSource))

// pageData is what the page shows.
type pageData struct {
	MetadataResponse
	Local    InstancesResponse
	Topology string
	Problem  string // why the group cannot be shown
}

func (s *server) pageRoutes(r chi.Router) { r.Get("/", s.page) }

// page shows what there is. A coordinator that cannot be asked is told on the page instead of replacing it: what the
// process knows itself is then needed most.
func (s *server) page(w http.ResponseWriter, r *http.Request) {
	data := pageData{Local: LocalInstances(s.q.Process(), s.q.Threads()), Topology: s.q.Topology()}
	p := s.q.Process()
	data.ApplicationID, data.Group, data.State = p.ApplicationID, p.Group, s.q.State()
	snapshot, err := s.q.Metadata(r.Context())
	if err != nil {
		data.Problem = err.Error()
	} else {
		data.MetadataResponse = newMetadata(snapshot, s.q.State(), s.now())
	}
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, data); err != nil {
		writeError(w, CodeInternal, "the page cannot be made: %v", err)
		return
	}
	write(w, http.StatusOK, "text/html; charset=utf-8", body.Bytes())
}
