package cluster

import (
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A configCheck says what is wrong with a value, or "".
type configCheck func(value string) (why string)

// topicConfigs are the configs that Kafka 4.4 has for topics, with what it checks of their values. kfake keeps any name
// and value, and takes a number that it cannot read for zero.
var topicConfigs = map[string]configCheck{
	"cleanup.policy":                          eachOf("compact", "delete"),
	"compression.gzip.level":                  atLeast(-1, 32),
	"compression.lz4.level":                   atLeast(1, 32),
	"compression.type":                        oneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
	"compression.zstd.level":                  atLeast(-131072, 32),
	"delete.retention.ms":                     atLeast(0, 64),
	"errors.deadletterqueue.group.enable":     boolean,
	"file.delete.delay.ms":                    atLeast(0, 64),
	"flush.messages":                          atLeast(1, 64),
	"flush.ms":                                atLeast(0, 64),
	"follower.replication.throttled.replicas": anything,
	"index.interval.bytes":                    atLeast(0, 32),
	"leader.replication.throttled.replicas":   anything,
	"local.retention.bytes":                   atLeast(-2, 64),
	"local.retention.ms":                      atLeast(-2, 64),
	"max.compaction.lag.ms":                   atLeast(1, 64),
	"max.decompressed.message.bytes":          atLeast(0, 32),
	"max.message.bytes":                       atLeast(0, 32),
	"message.timestamp.after.max.ms":          atLeast(0, 64),
	"message.timestamp.before.max.ms":         atLeast(0, 64),
	"message.timestamp.type":                  oneOf("CreateTime", "LogAppendTime"),
	"min.cleanable.dirty.ratio":               ratio,
	"min.compaction.lag.ms":                   atLeast(0, 64),
	"min.insync.replicas":                     atLeast(1, 32),
	"preallocate":                             boolean,
	"remote.copy.lag.bytes":                   atLeast(-1, 64),
	"remote.copy.lag.ms":                      atLeast(-1, 64),
	"remote.log.copy.disable":                 boolean,
	"remote.log.delete.on.disable":            boolean,
	"remote.storage.enable":                   boolean,
	"retention.bytes":                         atLeast(-1<<63, 64),
	"retention.ms":                            atLeast(-1, 64),
	"segment.bytes":                           atLeast(1<<20, 32),
	"segment.index.bytes":                     atLeast(4, 32),
	"segment.jitter.ms":                       atLeast(0, 64),
	"segment.ms":                              atLeast(1, 64),
	"unclean.leader.election.enable":          boolean,
}

// refuseTopicConfig reports why a topic cannot have a config, or nil.
func refuseTopicConfig(name, value string) *refusal {
	check, ok := topicConfigs[name]
	if !ok {
		return refuse(kerr.InvalidConfig, "Unknown topic config name: %s", name)
	}
	if why := check(value); why != "" {
		return refuse(kerr.InvalidConfig, "Invalid value %s for configuration %s: %s", value, name, why)
	}
	return nil
}

func anything(string) string { return "" }

func boolean(value string) string {
	if strings.EqualFold(value, "true") || strings.EqualFold(value, "false") {
		return ""
	}
	return "Expected value to be either true or false"
}

func ratio(value string) string {
	if f, err := strconv.ParseFloat(value, 64); err != nil || !(f >= 0 && f <= 1) {
		return "Value must be a number from 0 to 1"
	}
	return ""
}

func atLeast(least int64, bits int) configCheck {
	return func(value string) string {
		switch n, err := strconv.ParseInt(value, 10, bits); {
		case err != nil:
			return "Not a number of " + strconv.Itoa(bits) + " bits"
		case n < least:
			return "Value must be at least " + strconv.FormatInt(least, 10)
		}
		return ""
	}
}

func oneOf(names ...string) configCheck {
	return func(value string) string {
		if slices.Contains(names, value) {
			return ""
		}
		return "String must be one of: " + strings.Join(names, ", ")
	}
}

// eachOf checks a list, which may be empty.
func eachOf(names ...string) configCheck {
	one := oneOf(names...)
	return func(value string) string {
		if value == "" {
			return ""
		}
		for part := range strings.SplitSeq(value, ",") {
			if why := one(strings.TrimSpace(part)); why != "" {
				return why
			}
		}
		return ""
	}
}
