package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// The codes of errors; each goes with one HTTP status.
const (
	CodeInvalidParameter = "invalid_parameter"  // 400: a query parameter is unknown, repeated or has a value that is not one of those allowed
	CodeNotFound         = "not_found"          // 404: no such path
	CodeMethodNotAllowed = "method_not_allowed" // 405: only GET and HEAD are served
	CodeInternal         = "internal"           // 500: a bug; the log of the process has more
	CodeUnavailable      = "unavailable"        // 503: the group coordinator could not be asked, and nothing older is known
	CodeNotLive          = "not_live"           // 503: see /livez
	CodeNotReady         = "not_ready"          // 503: see /readyz
)

var statusOf = map[string]int{
	CodeInvalidParameter: http.StatusBadRequest,
	CodeNotFound:         http.StatusNotFound,
	CodeMethodNotAllowed: http.StatusMethodNotAllowed,
	CodeInternal:         http.StatusInternalServerError,
	CodeUnavailable:      http.StatusServiceUnavailable,
	CodeNotLive:          http.StatusServiceUnavailable,
	CodeNotReady:         http.StatusServiceUnavailable,
}

// ErrorResponse is the JSON form of every error.
type ErrorResponse struct {
	Error ErrorBody `json:"error"`
}

// ErrorBody is what an [ErrorResponse] holds.
type ErrorBody struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// writeError answers with an error of the given code.
func writeError(w http.ResponseWriter, code, format string, args ...any) {
	writeJSON(w, statusOf[code], ErrorResponse{ErrorBody{Code: code, Message: fmt.Sprintf(format, args...)}})
}

// writeJSON encodes before it writes, so that a status is never sent for a body that cannot follow.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // only a type that JSON cannot hold, that is a bug, comes here
		status = http.StatusInternalServerError
		body = []byte(`{"error":{"code":"internal","message":"the answer cannot be encoded"}}`)
	}
	write(w, status, "application/json", append(body, '\n'))
}

// write sends a whole answer. A client that went away is not an error of ours: the result of the write is of no use.
func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store") // answers describe this moment
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
