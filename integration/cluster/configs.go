package cluster

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxResources is how many resources one DescribeConfigs may name: each costs as much as all configs of a broker.
const maxResources = 10_000

// listConfigs are those topic configs that can be appended to.
var listConfigs = map[string]bool{
	"cleanup.policy": true, "leader.replication.throttled.replicas": true, "follower.replication.throttled.replicas": true,
}

// A configChange is one config of a request to change some.
type configChange struct {
	name  string
	op    kmsg.IncrementalAlterConfigOp
	value *string
}

// refuseChange reports why Kafka, or this cluster, does not change the configs of a resource, or nil. The broker's own
// are as the cluster needs them: an interval of zero would end the process, and with kfake's cleaner records would go.
func refuseChange(kind kmsg.ConfigResourceType, name string, changes []configChange) *refusal {
	switch {
	case kind == kmsg.ConfigResourceTypeBroker:
		return refuse(kerr.InvalidRequest, "Cannot update these configs dynamically: the embedded cluster's are fixed")
	case kind != kmsg.ConfigResourceTypeTopic:
		return nil // kfake knows
	case name == "":
		return refuse(kerr.InvalidRequest, "Default topic resources are not allowed.")
	case name == offsetsTopic:
		return refuse(kerr.TopicAuthorizationFailed, "The topic is the coordinator's.")
	}
	if why := refuseTopicName(name); why != nil {
		return why
	}
	for _, c := range changes {
		if why := refuseTopicChange(c); why != nil {
			return why
		}
	}
	return nil
}

func refuseTopicChange(c configChange) *refusal {
	switch {
	case c.op < kmsg.IncrementalAlterConfigOpSet || c.op > kmsg.IncrementalAlterConfigOpSubtract:
		return refuse(kerr.InvalidRequest, "Unknown operation %d", c.op)
	case c.op == kmsg.IncrementalAlterConfigOpDelete:
		return nil
	case c.value == nil:
		return refuse(kerr.InvalidRequest, "Null value not supported for : %s", c.name)
	case c.op != kmsg.IncrementalAlterConfigOpSet && topicConfigs[c.name] != nil && !listConfigs[c.name]:
		return refuse(kerr.InvalidConfig, "Can't append to or subtract from key %s because its type is not LIST.", c.name)
	}
	return refuseTopicConfig(c.name, *c.value)
}

// incrementalAlterConfigs answers the resources that are not changed, and has kfake change the others. It returns nil if
// there is nothing to refuse.
func (f *front) incrementalAlterConfigs(req *kmsg.IncrementalAlterConfigsRequest) (kmsg.Response, error) {
	refused := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	var rest []kmsg.IncrementalAlterConfigsRequestResource
	for _, r := range req.Resources {
		var changes []configChange
		for _, c := range r.Configs {
			changes = append(changes, configChange{c.Name, c.Op, c.Value})
		}
		why := refuseChange(r.ResourceType, r.ResourceName, changes)
		if why == nil {
			rest = append(rest, r)
			continue
		}
		rr := kmsg.NewIncrementalAlterConfigsResponseResource()
		rr.ResourceType, rr.ResourceName, rr.ErrorCode, rr.ErrorMessage = r.ResourceType, r.ResourceName, why.code, &why.message
		refused.Resources = append(refused.Resources, rr)
	}
	if len(refused.Resources) == 0 || len(rest) == 0 {
		return unless(len(refused.Resources) == 0, refused), nil
	}
	req.Resources = rest
	resp, err := req.RequestWith(context.Background(), f.broker.client)
	if err != nil {
		return nil, fmt.Errorf("alter the other configs of a request: %w", err)
	}
	refused.Resources = append(refused.Resources, resp.Resources...)
	return refused, nil
}

// alterConfigs does the same for the older request.
func (f *front) alterConfigs(req *kmsg.AlterConfigsRequest) (kmsg.Response, error) {
	refused := req.ResponseKind().(*kmsg.AlterConfigsResponse)
	var rest []kmsg.AlterConfigsRequestResource
	for _, r := range req.Resources {
		var changes []configChange
		for _, c := range r.Configs {
			changes = append(changes, configChange{c.Name, kmsg.IncrementalAlterConfigOpSet, c.Value})
		}
		why := refuseChange(r.ResourceType, r.ResourceName, changes)
		if why == nil {
			rest = append(rest, r)
			continue
		}
		rr := kmsg.NewAlterConfigsResponseResource()
		rr.ResourceType, rr.ResourceName, rr.ErrorCode, rr.ErrorMessage = r.ResourceType, r.ResourceName, why.code, &why.message
		refused.Resources = append(refused.Resources, rr)
	}
	if len(refused.Resources) == 0 || len(rest) == 0 {
		return unless(len(refused.Resources) == 0, refused), nil
	}
	req.Resources = rest
	resp, err := req.RequestWith(context.Background(), f.broker.client)
	if err != nil {
		return nil, fmt.Errorf("alter the other configs of a request: %w", err)
	}
	refused.Resources = append(refused.Resources, resp.Resources...)
	return refused, nil
}

// describeConfigs answers a request that names a topic, and leaves any other to kfake: that shows broker configs among a
// topic's, and a retention that there is not.
func (f *front) describeConfigs(req *kmsg.DescribeConfigsRequest) (kmsg.Response, error) {
	if len(req.Resources) > maxResources {
		return refuseResources(req), nil
	}
	isTopic := func(r kmsg.DescribeConfigsRequestResource) bool {
		return r.ResourceType == kmsg.ConfigResourceTypeTopic
	}
	if !slices.ContainsFunc(req.Resources, isTopic) {
		return nil, nil
	}
	version := req.Version
	resp, err := req.RequestWith(context.Background(), f.broker.client)
	if err != nil {
		return nil, fmt.Errorf("describe configs: %w", err)
	}
	resp.SetVersion(version)
	for i := range resp.Resources {
		if r := &resp.Resources[i]; r.ResourceType == kmsg.ConfigResourceTypeTopic {
			r.Configs = topicsOwn(r.Configs)
		}
	}
	return resp, nil
}

// topicsOwn are those configs that a topic can have.
func topicsOwn(configs []kmsg.DescribeConfigsResponseResourceConfig) []kmsg.DescribeConfigsResponseResourceConfig {
	configs = slices.DeleteFunc(configs, func(c kmsg.DescribeConfigsResponseResourceConfig) bool { return topicConfigs[c.Name] == nil })
	for i := range configs {
		if c := &configs[i]; c.Name == "retention.ms" && c.Source == kmsg.ConfigSourceDefaultConfig {
			c.Value = kmsg.StringPtr("-1")
		}
	}
	return configs
}

func refuseResources(req *kmsg.DescribeConfigsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	for _, r := range req.Resources {
		rr := kmsg.NewDescribeConfigsResponseResource()
		rr.ResourceType, rr.ResourceName, rr.ErrorCode = r.ResourceType, r.ResourceName, kerr.PolicyViolation.Code
		resp.Resources = append(resp.Resources, rr)
	}
	return resp
}
