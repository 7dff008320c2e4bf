package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// A Client asks the admin side of an embedded cluster. Its errors are *[Error] if the cluster refused.
type Client struct{ base *url.URL }

// maxAnswer bounds what an address that is not an admin side can make us read.
const maxAnswer = 64 << 20

// NewClient takes the address, http://host:port.
func NewClient(address string) (*Client, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("admin address %q: want http://host:port", address)
	}
	return &Client{base}, nil
}

// Group returns the picture of a group.
func (c *Client) Group(ctx context.Context, group string) (Group, error) {
	var g Group
	return g, c.do(ctx, http.MethodGet, nil, &g, group)
}

// Settings returns a group's settings.
func (c *Client) Settings(ctx context.Context, group string) (Settings, error) {
	var s Settings
	return s, c.do(ctx, http.MethodGet, nil, &s, group, "settings")
}

// Configure replaces a group's settings.
func (c *Client) Configure(ctx context.Context, group string, s Settings) (Settings, error) {
	var now Settings
	return now, c.do(ctx, http.MethodPut, s, &now, group, "settings")
}

// Expect replaces the list of expected instance ids, and returns the settings with it.
func (c *Client) Expect(ctx context.Context, group string, e Expected) (Settings, error) {
	var now Settings
	return now, c.do(ctx, http.MethodPut, e, &now, group, "expected-instances")
}

// ForceRebalance makes the group rebalance, and returns when the generation has begun.
func (c *Client) ForceRebalance(ctx context.Context, group string, f Force) (Change, error) {
	var change Change
	return change, c.do(ctx, http.MethodPost, f, &change, group, "force-rebalance")
}

func (c *Client) do(ctx context.Context, method string, body, answer any, path ...string) error {
	target := *c.base
	escaped := "/admin/v1/groups"
	for _, part := range path {
		escaped += "/" + url.PathEscape(part)
	}
	target.Path, target.RawPath = mustUnescape(escaped), escaped
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, &target, err)
		}
		content = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), content)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if errors.Is(err, io.EOF) { // so do brokers end a connection on which no Kafka frame comes
			return fmt.Errorf("%w: is that the address of the cluster's admin side (millrace dev -admin), or of its brokers?", err)
		}
		return err // names method and URL
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, &target, err)
	}
	if response.StatusCode != http.StatusOK {
		return refused(method, &target, response.Status, raw)
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("%s %s: the answer is not that of a cluster's admin side: %w", method, &target, err)
	}
	return nil
}

func refused(method string, target *url.URL, status string, raw []byte) error {
	var e Error
	if json.Unmarshal(raw, &e) == nil && e.Text != "" {
		return &e
	}
	return fmt.Errorf("%s %s: %s", method, target, status)
}

// mustUnescape undoes PathEscape, which cannot fail on its own output.
func mustUnescape(path string) string {
	plain, err := url.PathUnescape(path)
	if err != nil {
		panic(err)
	}
	return plain
}
