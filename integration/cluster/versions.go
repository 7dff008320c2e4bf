package cluster

import (
	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// hiddenKeys are requests that kfake could answer and that must not reach it: the other group worlds (KIP-848, share
// groups), whose state would live beside our coordinator's; DescribeTopicPartitions, whose null ELR lists end a Java
// client in a NullPointerException (without it the client asks for Metadata); client telemetry, which a broker
// serves only with a plugin that receives it, and without which clients need not deliver metrics before they close; and
// quotas and SCRAM users, which are not offered here: kfake would keep them and do nothing with them, and a quota that is
// not a number would keep it from writing its state.
var hiddenKeys = []int16{48, 49, 50, 51, 68, 69, 71, 72, 75, 76, 77, 78, 79, 90, 91, 92}

// maxCreateTopics is below the version (5) whose answer lists configs: kfake gives their source as -1, at which a Java
// client throws.
const maxCreateTopics = 4

// maxProduce is below the version (13) that names topics by their ids: two ids that it does not know, as of topics that
// are deleted while somebody produces to them, end kfake with an index out of range.
const maxProduce = 12

// maxAddPartitions is the last version that is for clients; the later ones are what brokers ask each other.
const maxAddPartitions = 3

// kfakeVersions is the version table that kfake itself is held to.
func kfakeVersions() *kversion.Versions {
	vs := kversion.Stable()
	for _, key := range hiddenKeys {
		vs.SetMaxKeyVersion(key, -1)
	}
	vs.SetMaxKeyVersion(keyCreateTopics, maxCreateTopics)
	vs.SetMaxKeyVersion(keyAddPartitions, maxAddPartitions)
	return vs
}

// versions is what the cluster serves: kfake's own answer to ApiVersions, less what is hidden. It is fixed at the start
// and read by all connections.
type versions struct {
	answer  kmsg.ApiVersionsResponse
	ranges  map[int16]kmsg.ApiVersionsResponseApiKey
	cluster string
	node    int32
}

func newVersions(answer *kmsg.ApiVersionsResponse, clusterID string, node int32) *versions {
	v := &versions{answer: *answer, ranges: map[int16]kmsg.ApiVersionsResponseApiKey{}, cluster: clusterID, node: node}
	v.answer.ApiKeys = nil
	hidden := map[int16]bool{}
	for _, key := range hiddenKeys {
		hidden[key] = true
	}
	for _, k := range answer.ApiKeys {
		if hidden[k.ApiKey] || kmsg.RequestForKey(k.ApiKey) == nil {
			continue
		}
		if k.ApiKey == keyProduce {
			k.MaxVersion = maxProduce // our own client may name ids
		}
		v.answer.ApiKeys = append(v.answer.ApiKeys, k)
		v.ranges[k.ApiKey] = k
	}
	return v
}

// hold narrows the group requests to what a profile serves.
func (v *versions) hold(p coordinator.Profile) {
	for i, k := range v.answer.ApiKeys {
		if coordinator.Handles(k.ApiKey) {
			k.MinVersion = max(k.MinVersion, coordinator.MinVersion(p, k.ApiKey))
			v.answer.ApiKeys[i], v.ranges[k.ApiKey] = k, k
		}
	}
}

// check reports why a request cannot be served, or "".
func (v *versions) check(key, version int16) (why string) {
	r, ok := v.ranges[key]
	switch {
	case !ok:
		return "is not served here"
	case version < r.MinVersion || version > r.MaxVersion:
		return "is outside the range that ApiVersions tells"
	}
	return ""
}

// served reports whether an ApiVersions request of that version can be parsed at all. A newer one is answered too, see
// [versions.tooNew]: it is the one request that a client sends before it knows what we speak.
func (v *versions) served(version int16) bool {
	return version >= 0 && version <= v.ranges[keyAPIVersions].MaxVersion
}

// tooNew answers a version we do not know, as KIP-511 has it: in version 0, with our own range of ApiVersions.
func (v *versions) tooNew() *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{v.ranges[keyAPIVersions]}
	return resp
}

// describe answers ApiVersions.
func (v *versions) describe(req *kmsg.ApiVersionsRequest) *kmsg.ApiVersionsResponse {
	resp := v.answer // shares the slices, which nobody writes
	resp.SetVersion(req.Version)
	if code := v.refuse(req); code != 0 {
		failed := kmsg.NewPtrApiVersionsResponse()
		failed.SetVersion(req.Version)
		failed.ErrorCode = code
		return failed
	}
	return &resp
}

func (v *versions) refuse(req *kmsg.ApiVersionsRequest) int16 {
	if req.Version >= 3 && (!validSoftware(req.ClientSoftwareName) || !validSoftware(req.ClientSoftwareVersion)) {
		return kerr.InvalidRequest.Code
	}
	if req.Version < 5 {
		return 0
	}
	// KIP-1242: a client that was sent here by stale metadata asks for another cluster or node and has to start over.
	switch named, numbered := req.ClusterID != nil, req.NodeID != -1; {
	case named != numbered:
		return kerr.InvalidRequest.Code
	case named && (*req.ClusterID != v.cluster || req.NodeID != v.node):
		return kerr.RebootstrapRequired.Code
	}
	return 0
}

// validSoftware is Kafka's [a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?
func validSoftware(s string) bool {
	alnum := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }
	if s == "" || !alnum(s[0]) || !alnum(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if !alnum(s[i]) && s[i] != '-' && s[i] != '.' {
			return false
		}
	}
	return true
}
