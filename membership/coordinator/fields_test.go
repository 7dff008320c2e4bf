package coordinator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// errorsIn lists the error codes of an answer: one, or one for each partition, group or member that it answers for. A
// batch LeaveGroup that fails as a whole has only the error of the whole.
func errorsIn(resp kmsg.Response) []int16 {
	var codes []int16
	switch r := resp.(type) {
	case *kmsg.LeaveGroupResponse:
		for _, m := range r.Members {
			codes = append(codes, m.ErrorCode)
		}
		if r.ErrorCode != 0 || len(codes) == 0 {
			codes = []int16{r.ErrorCode}
		}
	case *kmsg.OffsetCommitResponse:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				codes = append(codes, p.ErrorCode)
			}
		}
	case *kmsg.TxnOffsetCommitResponse:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				codes = append(codes, p.ErrorCode)
			}
		}
	case *kmsg.OffsetFetchResponse:
		return fetchErrors(r)
	case *kmsg.OffsetDeleteResponse:
		codes = append(codes, r.ErrorCode)
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				codes = append(codes, p.ErrorCode)
			}
		}
	case *kmsg.DescribeGroupsResponse:
		for _, g := range r.Groups {
			codes = append(codes, g.ErrorCode)
		}
	case *kmsg.DeleteGroupsResponse:
		for _, g := range r.Groups {
			codes = append(codes, g.ErrorCode)
		}
	case *kmsg.JoinGroupResponse:
		codes = append(codes, r.ErrorCode)
	case *kmsg.SyncGroupResponse:
		codes = append(codes, r.ErrorCode)
	case *kmsg.HeartbeatResponse:
		codes = append(codes, r.ErrorCode)
	case *kmsg.ListGroupsResponse:
		codes = append(codes, r.ErrorCode)
	}
	return codes
}

// fetchErrors lists a group's error if it has one, otherwise those of its partitions.
func fetchErrors(r *kmsg.OffsetFetchResponse) []int16 {
	var codes []int16
	for _, g := range r.Groups {
		if g.ErrorCode != 0 {
			codes = append(codes, g.ErrorCode)
			continue
		}
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				codes = append(codes, p.ErrorCode)
			}
		}
	}
	if r.ErrorCode != 0 {
		codes = append(codes, r.ErrorCode)
	}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			codes = append(codes, p.ErrorCode)
		}
	}
	return codes
}

// fields are what "expect answer=" can check besides errors.
func fields(resp kmsg.Response) map[string]string {
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		var list, instances []string
		for _, m := range r.Members {
			list = append(list, m.MemberID)
			if m.InstanceID != nil {
				instances = append(instances, *m.InstanceID)
			}
		}
		return map[string]string{
			"generation": fmt.Sprint(r.Generation),
			"member":     r.MemberID,
			"leader":     r.LeaderID,
			"protocol":   textOrEmpty(r.Protocol),
			"skip":       fmt.Sprint(r.SkipAssignment),
			"list":       strings.Join(slices.Sorted(slices.Values(list)), ","),
			"instances":  strings.Join(slices.Sorted(slices.Values(instances)), ","),
		}
	case *kmsg.SyncGroupResponse:
		return map[string]string{"assignment": string(r.MemberAssignment), "protocol": textOrEmpty(r.Protocol)}
	case *kmsg.OffsetFetchResponse:
		return map[string]string{"offsets": strings.Join(fetchedOffsets(r), ",")}
	case *kmsg.DescribeGroupsResponse:
		if len(r.Groups) == 1 {
			return map[string]string{"state": r.Groups[0].State, "protocol": r.Groups[0].Protocol}
		}
	case *kmsg.ListGroupsResponse:
		var ids []string
		for _, g := range r.Groups {
			ids = append(ids, g.Group)
		}
		return map[string]string{"list": strings.Join(ids, ",")}
	}
	return nil
}

func fetchedOffsets(r *kmsg.OffsetFetchResponse) []string {
	var list []string
	for _, g := range r.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				list = append(list, fmt.Sprintf("%s:%d", where(t.Topic, t.TopicID, p.Partition), p.Offset))
			}
		}
	}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			list = append(list, fmt.Sprintf("%s/%d:%d", t.Topic, p.Partition, p.Offset))
		}
	}
	return list
}

func textOrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
