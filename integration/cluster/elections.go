package cluster

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxElection is the last of the types of election: preferred, unclean.
const maxElection = 1

// electLeaders answers as a broker does whose partitions all have their one replica as leader: no election is needed.
// kfake would raise the leader epoch each time, and then answer OffsetForLeaderEpoch for the old one in a way that
// clients take for lost data.
func (f *front) electLeaders(req *kmsg.ElectLeadersRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	unknown := req.Version >= 1 && (req.ElectionType < 0 || req.ElectionType > maxElection)
	if unknown && (req.Topics == nil || len(req.Topics) > 0) {
		resp.ErrorCode = kerr.InvalidRequest.Code
	}
	for _, t := range req.Topics {
		rt := kmsg.NewElectLeadersResponseTopic()
		rt.Topic = t.Topic
		partitions := f.topics.partitions(t.Topic)
		for _, p := range t.Partitions {
			rp := kmsg.NewElectLeadersResponseTopicPartition()
			rp.Partition = p
			switch {
			case unknown:
				rp.ErrorCode, rp.ErrorMessage = kerr.InvalidRequest.Code, kmsg.StringPtr(fmt.Sprintf("Unknown election type %d", req.ElectionType))
			case p < 0 || p >= partitions:
				rp.ErrorCode, rp.ErrorMessage = kerr.UnknownTopicOrPartition.Code, kmsg.StringPtr(fmt.Sprintf("No such partition as %s-%d", t.Topic, p))
			default:
				rp.ErrorCode, rp.ErrorMessage = kerr.ElectionNotNeeded.Code, kmsg.StringPtr("Leader election not needed for topic partition.")
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}
