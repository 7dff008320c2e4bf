package classic

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace-io/millrace/membership"
)

// An old broker is a clear error, never a silent dynamic member.
func TestBrokerTooOld(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.MaxVersions(kversion.V2_2_0()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := worldAt(t, c.ListenAddrs())
	cfg := w.config("wc-0", true)
	cfg.Client = w.client()
	_, err = Start(t.Context(), cfg)
	e, ok := errors.AsType[*membership.UnsupportedError](err)
	if !ok || e.Broker != c.ListenAddrs()[0] || e.Request != membership.JoinGroup || e.Need != 5 || e.Max != 4 {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "JoinGroup version 5 and the broker speaks it up to version 4") {
		t.Errorf("the error says %q", err)
	}
}

func TestUnknownRequestIsTooOld(t *testing.T) {
	err := checkVersions("b:9092", &kmsg.ApiVersionsResponse{})
	if e, ok := errors.AsType[*membership.UnsupportedError](err); !ok || e.Max != -1 || !strings.Contains(err.Error(), "does not know it") {
		t.Errorf("got %v", err)
	}
}

// No broker: the start ends in time, and the error has address and cause.
func TestUnreachableBroker(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close() // nobody listens there any more
	w := worldAt(t, []string{addr})
	cfg := w.config("wc-0", true)
	cfg.Client, cfg.StartTimeout = w.client(), 200*time.Millisecond
	begin := time.Now()
	_, err = Start(t.Context(), cfg)
	e, ok := errors.AsType[*UnreachableError](err)
	if !ok || len(e.Addresses) != 1 || e.Addresses[0] != addr {
		t.Fatalf("got %v", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, want := range []string{addr, "connection refused"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %q: %v", want, err)
		}
	}
}

func TestConfigErrorsNameTheField(t *testing.T) {
	_, err := Start(t.Context(), Config{SessionTimeout: time.Second, HeartbeatInterval: time.Second, RebalanceTimeout: -1, Standbys: -1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{"Client", "Group", "Subscription", "Tasks", "Standbys is -1", "RebalanceTimeout is -1ns", "HeartbeatInterval is 1s, want less than SessionTimeout"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%q is not in the error:\n%v", field, err)
		}
	}
}

// The versions of transactions decide whether offsets need to be announced.
func TestImplicitOffsets(t *testing.T) {
	w := worldAt(t, []string{"127.0.0.1:1"})
	versions := func(txnOffsetCommit, feature int16) *kmsg.ApiVersionsResponse {
		return &kmsg.ApiVersionsResponse{
			ApiKeys:           []kmsg.ApiVersionsResponseApiKey{{ApiKey: kmsg.TxnOffsetCommit.Int16(), MaxVersion: txnOffsetCommit}},
			FinalizedFeatures: []kmsg.ApiVersionsResponseFinalizedFeature{{Name: "transaction.version", MaxVersionLevel: feature}},
		}
	}
	for _, c := range []struct {
		versions *kmsg.ApiVersionsResponse
		want     bool
	}{
		{versions(5, 2), true}, {versions(4, 2), false}, {versions(5, 1), false}, {&kmsg.ApiVersionsResponse{}, false},
	} {
		if got := implicitOffsets(w.client(), c.versions); got != c.want {
			t.Errorf("%+v: %v", c.versions, got)
		}
	}
}
