package classic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace-io/millrace/membership"
)

// UnreachableError says that no broker answered when the member started.
type UnreachableError struct {
	Addresses []string // the seed brokers
	Waited    time.Duration
	Err       error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no broker answered within %v at %s: %v", e.Waited.Round(time.Millisecond), strings.Join(e.Addresses, ", "), e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// facts are what the member learns of the cluster when it starts.
type facts struct {
	coordinator int32 // node id of the group's coordinator
	// implicitOffsets: TxnOffsetCommit adds the group to the transaction by itself (KIP-890), no AddOffsetsToTxn.
	implicitOffsets bool
}

// minVersions lists what static membership needs: the versions that carry an instance id. JoinGroup is first.
var minVersions = []struct {
	request membership.Request
	key     kmsg.Key
	need    int16
}{
	{membership.JoinGroup, kmsg.JoinGroup, 5},
	{membership.SyncGroup, kmsg.SyncGroup, 3},
	{membership.Heartbeat, kmsg.Heartbeat, 3},
	{membership.LeaveGroup, kmsg.LeaveGroup, 3},
	{membership.OffsetCommit, kmsg.OffsetCommit, 7},
	{membership.TxnOffsetCommit, kmsg.TxnOffsetCommit, 3},
}

// kip890 is the version of TxnOffsetCommit from which it adds the group to the transaction.
const kip890 = 5

// probe finds the coordinator and checks its versions.
func probe(ctx context.Context, cfg Config) (facts, error) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, cfg.StartTimeout)
	defer cancel()
	coordinator, addr, err := findCoordinator(ctx, cfg)
	var versions *kmsg.ApiVersionsResponse
	if err == nil {
		versions, err = apiVersions(ctx, cfg.Client, coordinator)
	}
	if err != nil {
		if _, answered := errors.AsType[*kerr.Error](err); answered && ctx.Err() == nil {
			return facts{}, fmt.Errorf("group %q: find the coordinator: %w", cfg.Group, err)
		}
		return facts{}, unreachable(cfg.Client, time.Since(begin), err)
	}
	if err := checkVersions(addr, versions); err != nil {
		return facts{}, err
	}
	return facts{coordinator: coordinator, implicitOffsets: implicitOffsets(cfg.Client, versions)}, nil
}

// findCoordinator waits for the group's coordinator: a cluster that has just started may have none yet.
func findCoordinator(ctx context.Context, cfg Config) (node int32, addr string, err error) {
	pause := 50 * time.Millisecond
	for {
		node, addr, err = askCoordinator(ctx, cfg)
		if e, ok := errors.AsType[*kerr.Error](err); !ok || !e.Retriable {
			return node, addr, err
		}
		select {
		case <-ctx.Done():
			return node, addr, err
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		}
	}
}

func askCoordinator(ctx context.Context, cfg Config) (node int32, addr string, err error) {
	// kgo addresses brokers by node id only after it has seen them in metadata. No topics: nil would mean all.
	brokers := kmsg.NewPtrMetadataRequest()
	brokers.Topics = []kmsg.MetadataRequestTopic{}
	if _, err := brokers.RequestWith(ctx, cfg.Client); err != nil {
		return 0, "", err
	}
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey, req.CoordinatorKeys = cfg.Group, []string{cfg.Group}
	resp, err := req.RequestWith(ctx, cfg.Client)
	if err != nil {
		return 0, "", err
	}
	if len(resp.Coordinators) == 0 { // before version 4
		return resp.NodeID, join(resp.Host, resp.Port), kerr.ErrorForCode(resp.ErrorCode)
	}
	c := resp.Coordinators[0]
	return c.NodeID, join(c.Host, c.Port), kerr.ErrorForCode(c.ErrorCode)
}

func join(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

func apiVersions(ctx context.Context, client *kgo.Client, node int32) (*kmsg.ApiVersionsResponse, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "millrace", "1"
	resp, err := client.Broker(int(node)).RetriableRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	versions := resp.(*kmsg.ApiVersionsResponse)
	return versions, kerr.ErrorForCode(versions.ErrorCode)
}

// checkVersions makes an old broker an error instead of a silent dynamic member.
func checkVersions(addr string, versions *kmsg.ApiVersionsResponse) error {
	for _, v := range minVersions {
		if highest := maxVersion(versions, v.key); highest < v.need {
			return &membership.UnsupportedError{Broker: addr, Request: v.request, Need: int(v.need), Max: int(highest), Why: "static membership"}
		}
	}
	return nil
}

// maxVersion returns the broker's highest version of a request, -1 if it does not know it.
func maxVersion(versions *kmsg.ApiVersionsResponse, key kmsg.Key) int16 {
	for _, k := range versions.ApiKeys {
		if k.ApiKey == key.Int16() {
			return k.MaxVersion
		}
	}
	return -1
}

// implicitOffsets decides as kgo does for its own transactions: the cluster runs transaction version 2, and the client
// was not told to speak older versions.
func implicitOffsets(client *kgo.Client, versions *kmsg.ApiVersionsResponse) bool {
	if maxVersion(versions, kmsg.TxnOffsetCommit) < kip890 {
		return false
	}
	if limit, ok := client.OptValue(kgo.MaxVersions).(*kversion.Versions); ok && limit != nil {
		if v, ok := limit.LookupMaxKeyVersion(kmsg.TxnOffsetCommit.Int16()); !ok || v < kip890 {
			return false
		}
	}
	for _, f := range versions.FinalizedFeatures {
		if f.Name == "transaction.version" {
			return f.MaxVersionLevel >= 2
		}
	}
	return false
}

// unreachable finds out why nobody answers: kgo's error tells only that the time is over.
func unreachable(client *kgo.Client, waited time.Duration, cause error) error {
	addrs, _ := client.OptValue(kgo.SeedBrokers).([]string)
	dial, _ := client.OptValue(kgo.Dialer).(func(context.Context, string, string) (net.Conn, error))
	e := &UnreachableError{Addresses: addrs, Waited: waited, Err: cause}
	if dial == nil {
		return e
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	errs := []error{cause}
	for _, addr := range addrs {
		conn, err := dial(ctx, "tcp", addr)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		conn.Close()
	}
	e.Err = errors.Join(errs...)
	return e
}

// parkedOverhead is what a parked join needs beyond the rebalance timeout before its connection may be given up:
// Java's clients wait that long.
const parkedOverhead = 5 * time.Second

// warnOfShortTimeout tells when the client would cut parked joins.
func (d *Driver) warnOfShortTimeout() {
	overhead, ok := d.client.OptValue(kgo.RequestTimeoutOverhead).(time.Duration)
	if ok && overhead < parkedOverhead {
		d.log.Warn("the client gives requests so little time that a parked JoinGroup may be cut and repeated", "RequestTimeoutOverhead", overhead, "want", parkedOverhead)
	}
}
