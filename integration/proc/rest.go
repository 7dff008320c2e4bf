package proc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace-io/millrace/metadata/rest"
)

// REST asks the REST side of a process at an address.
type REST string

// Ready says whether the application is in RUNNING.
func (r REST) Ready(ctx context.Context) (bool, error) {
	resp, err := r.get(ctx, "/readyz")
	if err != nil {
		return false, err
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK, nil
}

// Metadata is what the process tells of the group.
func (r REST) Metadata(ctx context.Context) (rest.MetadataResponse, error) {
	var m rest.MetadataResponse
	resp, err := r.get(ctx, "/v1/metadata")
	if err != nil {
		return m, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return m, fmt.Errorf("GET /v1/metadata of %s: %s", r, resp.Status)
	}
	return m, json.NewDecoder(resp.Body).Decode(&m)
}

// InstanceIDs lists the instance ids of the process' own threads.
func (r REST) InstanceIDs(ctx context.Context) ([]string, error) {
	resp, err := r.get(ctx, "/v1/instances?format=text")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET /v1/instances of %s: %s", r, resp.Status)
	}
	return strings.Fields(string(text)), nil
}

// Metric is the sum of a metric over its label values.
func (r REST) Metric(ctx context.Context, name string) (float64, error) {
	resp, err := r.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	sum, found := 0.0, false
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		if !ok || rest == "" || (rest[0] != ' ' && rest[0] != '{') {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s of %s: %w", name, r, err)
		}
		sum, found = sum+value, true
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	if !found {
		return 0, fmt.Errorf("%s has no metric %s", r, name)
	}
	return sum, nil
}

func (r REST) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+string(r)+path, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(req)
}
