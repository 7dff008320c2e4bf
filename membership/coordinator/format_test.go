package coordinator

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// verb is the command that sends a request.
func verb(req kmsg.Request) string {
	switch req.(type) {
	case *kmsg.JoinGroupRequest:
		return "join"
	case *kmsg.SyncGroupRequest:
		return "sync"
	case *kmsg.HeartbeatRequest:
		return "heartbeat"
	case *kmsg.LeaveGroupRequest:
		return "leave"
	case *kmsg.OffsetCommitRequest:
		return "commit"
	case *kmsg.TxnOffsetCommitRequest:
		return "txn-commit"
	case *kmsg.OffsetFetchRequest:
		return "fetch"
	case *kmsg.OffsetDeleteRequest:
		return "offset-delete"
	case *kmsg.DescribeGroupsRequest:
		return "describe"
	case *kmsg.ListGroupsRequest:
		return "list"
	case *kmsg.DeleteGroupsRequest:
		return "delete"
	}
	return fmt.Sprintf("%T", req)
}

// errorText is an error's code and name; no error is "ok".
func errorText(code int16) string {
	if code == 0 {
		return "ok"
	}
	if e, ok := kerr.ErrorForCode(code).(*kerr.Error); ok {
		return fmt.Sprintf("%d %s", code, e.Message)
	}
	return fmt.Sprint(code)
}

// formatAnswer is one line a response, or a line for each of its parts.
func formatAnswer(resp kmsg.Response) string {
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		return formatJoin(r)
	case *kmsg.SyncGroupResponse:
		return formatSync(r)
	case *kmsg.HeartbeatResponse:
		return errorText(r.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		return formatLeave(r)
	case *kmsg.OffsetCommitResponse:
		var parts []string
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				parts = append(parts, fmt.Sprintf("%s: %s", where(t.Topic, t.TopicID, p.Partition), errorText(p.ErrorCode)))
			}
		}
		return strings.Join(parts, ", ")
	case *kmsg.TxnOffsetCommitResponse:
		var parts []string
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				parts = append(parts, fmt.Sprintf("%s: %s", where(t.Topic, t.TopicID, p.Partition), errorText(p.ErrorCode)))
			}
		}
		return strings.Join(parts, ", ")
	case *kmsg.OffsetFetchResponse:
		return formatFetch(r)
	case *kmsg.OffsetDeleteResponse:
		parts := []string{errorText(r.ErrorCode)}
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				parts = append(parts, fmt.Sprintf("%s/%d: %s", t.Topic, p.Partition, errorText(p.ErrorCode)))
			}
		}
		return strings.Join(parts, ", ")
	case *kmsg.DescribeGroupsResponse:
		return formatDescribe(r)
	case *kmsg.ListGroupsResponse:
		parts := []string{errorText(r.ErrorCode)}
		for _, g := range r.Groups {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s type=%q %s %s", g.Group, g.ProtocolType, g.GroupState, g.GroupType)))
		}
		return strings.Join(parts, ", ")
	case *kmsg.DeleteGroupsResponse:
		var parts []string
		for _, g := range r.Groups {
			parts = append(parts, fmt.Sprintf("%s: %s", g.Group, errorText(g.ErrorCode)))
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%+v", resp)
}

func where(topic string, id [16]byte, partition int32) string {
	if topic == "" {
		topic = fmt.Sprintf("id%d", id[15])
	}
	return fmt.Sprintf("%s/%d", topic, partition)
}

func nullableText(s *string) string {
	if s == nil {
		return "null"
	}
	if *s == "" {
		return `""`
	}
	return *s
}

func plain(s string) string { return nullableText(&s) }

func formatJoin(r *kmsg.JoinGroupResponse) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s generation=%d member=%s leader=%s", errorText(r.ErrorCode), r.Generation, plain(r.MemberID), plain(r.LeaderID))
	if r.Version >= 7 {
		fmt.Fprintf(&b, " type=%s", nullableText(r.ProtocolType))
	}
	fmt.Fprintf(&b, " protocol=%s", nullableText(r.Protocol))
	if r.SkipAssignment {
		b.WriteString(" skip")
	}
	for _, m := range r.Members {
		fmt.Fprintf(&b, "\n  %s", m.MemberID)
		if m.InstanceID != nil {
			fmt.Fprintf(&b, " instance=%s", *m.InstanceID)
		}
		fmt.Fprintf(&b, " %q", m.ProtocolMetadata)
	}
	return b.String()
}

func formatSync(r *kmsg.SyncGroupResponse) string {
	if r.ErrorCode != 0 {
		return errorText(r.ErrorCode)
	}
	s := fmt.Sprintf("ok assignment=%q", r.MemberAssignment)
	if r.Version >= 5 {
		s += fmt.Sprintf(" type=%s protocol=%s", nullableText(r.ProtocolType), nullableText(r.Protocol))
	}
	return s
}

func formatLeave(r *kmsg.LeaveGroupResponse) string {
	s := errorText(r.ErrorCode)
	for _, m := range r.Members {
		s += fmt.Sprintf(", member=%s instance=%s: %s", plain(m.MemberID), nullableText(m.InstanceID), errorText(m.ErrorCode))
	}
	return s
}

func formatFetch(r *kmsg.OffsetFetchResponse) string {
	if r.Version >= 8 {
		var parts []string
		for _, g := range r.Groups {
			s := g.Group + ": " + errorText(g.ErrorCode)
			for _, t := range g.Topics {
				for _, p := range t.Partitions {
					s += ", " + formatOffset(where(t.Topic, t.TopicID, p.Partition), p.ErrorCode, p.Offset, p.LeaderEpoch, p.Metadata)
				}
			}
			parts = append(parts, s)
		}
		return strings.Join(parts, "\n  ")
	}
	var parts []string
	if r.Version >= 2 {
		parts = append(parts, errorText(r.ErrorCode))
	}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			parts = append(parts, formatOffset(where(t.Topic, [16]byte{}, p.Partition), p.ErrorCode, p.Offset, p.LeaderEpoch, p.Metadata))
		}
	}
	return strings.Join(parts, ", ")
}

func formatOffset(where string, code int16, at int64, epoch int32, metadata *string) string {
	if code != 0 {
		return fmt.Sprintf("%s: %s", where, errorText(code))
	}
	s := fmt.Sprintf("%s=%d", where, at)
	if epoch >= 0 {
		s += fmt.Sprintf(" epoch=%d", epoch)
	}
	if metadata == nil || *metadata != "" {
		s += " metadata=" + nullableText(metadata)
	}
	return s
}

func formatDescribe(r *kmsg.DescribeGroupsResponse) string {
	var parts []string
	for _, g := range r.Groups {
		s := fmt.Sprintf("%s: %s state=%s type=%s protocol=%s", g.Group, errorText(g.ErrorCode), g.State, plain(g.ProtocolType), plain(g.Protocol))
		if g.ErrorMessage != nil {
			s += fmt.Sprintf(" message=%q", *g.ErrorMessage)
		}
		if g.AuthorizedOperations > 0 {
			s += fmt.Sprintf(" operations=%d", g.AuthorizedOperations)
		}
		for _, m := range g.Members {
			s += fmt.Sprintf("\n  %s instance=%s client=%s host=%s metadata=%q assignment=%q", m.MemberID, nullableText(m.InstanceID), m.ClientID, m.ClientHost, m.ProtocolMetadata, m.MemberAssignment)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "\n")
}
