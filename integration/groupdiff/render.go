package groupdiff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// render writes an answer down for comparison: everything that it tells, with member ids renamed and lists sorted. group
// is the only one shown of a list.
func (n *names) render(resp kmsg.Response, group string) string {
	switch r := resp.(type) {
	case nil:
		return parkedText
	case *kmsg.JoinGroupResponse:
		var members []string
		for _, m := range r.Members {
			members = append(members, fmt.Sprintf("%s/%s/%q", n.rename(m.MemberID), text(m.InstanceID), m.ProtocolMetadata))
		}
		return fmt.Sprintf("%s generation=%d type=%s protocol=%s leader=%s skip=%v member=%s %s", errorName(r.ErrorCode), r.Generation,
			text(r.ProtocolType), text(r.Protocol), n.rename(r.LeaderID), r.SkipAssignment, n.rename(r.MemberID), sorted(members))
	case *kmsg.SyncGroupResponse:
		return fmt.Sprintf("%s type=%s protocol=%s assignment=%q", errorName(r.ErrorCode), text(r.ProtocolType), text(r.Protocol), r.MemberAssignment)
	case *kmsg.HeartbeatResponse:
		return errorName(r.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		var members []string
		for _, m := range r.Members {
			members = append(members, fmt.Sprintf("%s/%s:%s", n.rename(m.MemberID), text(m.InstanceID), errorName(m.ErrorCode)))
		}
		return errorName(r.ErrorCode) + " " + sorted(members)
	case *kmsg.DescribeGroupsResponse:
		return n.renderDescribe(r, group)
	case *kmsg.ListGroupsResponse:
		for _, g := range r.Groups {
			if g.Group == group {
				return fmt.Sprintf("%s type=%s state=%s %s", errorName(r.ErrorCode), g.ProtocolType, g.GroupState, g.GroupType)
			}
		}
		return errorName(r.ErrorCode) + " absent"
	case *kmsg.DeleteGroupsResponse:
		var groups []string
		for _, g := range r.Groups {
			groups = append(groups, short(g.Group, group)+":"+errorName(g.ErrorCode))
		}
		return sorted(groups)
	}
	return n.renderOffsets(resp, group)
}

// short names a group of an answer.
func short(name, group string) string { return strings.Replace(name, group, "group", 1) }

const parkedText = "parked"

func (n *names) renderDescribe(r *kmsg.DescribeGroupsResponse, group string) string {
	var groups []string
	for _, g := range r.Groups {
		var members []string
		for _, m := range g.Members {
			members = append(members, fmt.Sprintf("%s/%s/%s/%s/%q/%q", n.rename(m.MemberID), text(m.InstanceID), m.ClientID, m.ClientHost,
				m.ProtocolMetadata, m.MemberAssignment))
		}
		groups = append(groups, fmt.Sprintf("%s %s state=%s type=%s protocol=%s operations=%d %s", short(g.Group, group), errorName(g.ErrorCode),
			g.State, g.ProtocolType, g.Protocol, g.AuthorizedOperations, sorted(members)))
	}
	return sorted(groups)
}

// renderOffsets writes down the answers that go partition by partition.
func (n *names) renderOffsets(resp kmsg.Response, group string) string {
	var parts []string
	head := ""
	add := func(topic string, partition int32, code int16, more ...any) {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s/%d:%s %s", topic, partition, errorName(code), fmt.Sprint(more...))))
	}
	switch r := resp.(type) {
	case *kmsg.OffsetCommitResponse:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				add(n.topic(t.Topic, t.TopicID), p.Partition, p.ErrorCode)
			}
		}
	case *kmsg.TxnOffsetCommitResponse:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				add(n.topic(t.Topic, t.TopicID), p.Partition, p.ErrorCode)
			}
		}
	case *kmsg.OffsetDeleteResponse:
		head = errorName(r.ErrorCode) + " "
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				add(t.Topic, p.Partition, p.ErrorCode)
			}
		}
	case *kmsg.OffsetFetchResponse:
		head = errorName(r.ErrorCode) + " "
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				add(t.Topic, p.Partition, p.ErrorCode, p.Offset, " ", p.LeaderEpoch, " ", text(p.Metadata))
			}
		}
		for _, g := range r.Groups {
			head += short(g.Group, group) + " " + errorName(g.ErrorCode) + " "
			for _, t := range g.Topics {
				for _, p := range t.Partitions {
					add(short(g.Group, group)+" "+n.topic(t.Topic, t.TopicID), p.Partition, p.ErrorCode, p.Offset, " ", p.LeaderEpoch, " ", text(p.Metadata))
				}
			}
		}
	default:
		return fmt.Sprintf("%T", resp)
	}
	return head + sorted(parts)
}

func sorted(list []string) string {
	slices.Sort(list)
	return "[" + strings.Join(list, ", ") + "]"
}

func text(s *string) string {
	if s == nil {
		return "null"
	}
	return "'" + *s + "'"
}

func errorName(code int16) string {
	if code == 0 {
		return "ok"
	}
	if e, ok := kerr.ErrorForCode(code).(*kerr.Error); ok && e.Code == code {
		return e.Message
	}
	return fmt.Sprintf("error %d", code)
}
