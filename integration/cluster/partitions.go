package cluster

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxPartitions is how many partitions one request may ask for, as in Kafka's controller. kfake would make any number,
// and a mistyped one would be the end of the process.
const maxPartitions = 10_000

// refuseManyTopics answers a CreateTopics request that asks for too many partitions, and nil for any other.
func refuseManyTopics(req *kmsg.CreateTopicsRequest) kmsg.Response {
	total := int64(0)
	for _, t := range req.Topics {
		total += max(int64(t.NumPartitions), int64(len(t.ReplicaAssignment)), 1)
	}
	if total <= maxPartitions {
		return nil
	}
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewCreateTopicsResponseTopic()
		rt.Topic, rt.ErrorCode, rt.ErrorMessage = t.Topic, kerr.PolicyViolation.Code, tooManyPartitions()
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// refuseManyPartitions does the same for CreatePartitions.
func refuseManyPartitions(req *kmsg.CreatePartitionsRequest) kmsg.Response {
	total := int64(0)
	for _, t := range req.Topics {
		total += max(int64(t.Count), 0)
	}
	if total <= maxPartitions {
		return nil
	}
	resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewCreatePartitionsResponseTopic()
		rt.Topic, rt.ErrorCode, rt.ErrorMessage = t.Topic, kerr.PolicyViolation.Code, tooManyPartitions()
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func tooManyPartitions() *string {
	return kmsg.StringPtr("Excessively large number of partitions per request.")
}
