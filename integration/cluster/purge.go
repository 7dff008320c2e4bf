package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A log whose records are all deleted has no segment left, and without one kfake begins at offset 0 again after a
// restart, below what groups have committed. So before a DeleteRecords that may empty a log, its end is noted in the
// log's directory (kfake removes that with the topic), and before kfake reads a log without segments, it gets an empty
// one that begins there. A log that has segments needs no note.

// notePurge notes the ends of the logs that a request may empty.
func notePurge(ctx context.Context, d *dataDir, b *broker, req *kmsg.DeleteRecordsRequest) error {
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			end, err := b.listOffset(ctx, t.Topic, p.Partition, latest)
			if errors.Is(err, kerr.UnknownTopicOrPartition) {
				continue // kfake tells the client
			}
			if err != nil {
				return err
			}
			if p.Offset != -1 && p.Offset < end || end == 0 {
				continue
			}
			if err := d.noteEnd(t.Topic, p.Partition, end); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *dataDir) noteEnd(topic string, partition int32, end int64) error {
	dir := filepath.Join(d.file(kfakeParts), fmt.Sprintf("%s-%d", url.PathEscape(topic), partition))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	// By renaming, so that there is never half a number.
	name := filepath.Join(dir, endName)
	if err := os.WriteFile(name+".tmp", strconv.AppendInt(nil, end, 10), 0o644); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if err := os.Rename(name+".tmp", name); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// restoreEnds gives logs without segments an empty one where they have ended.
func restoreEnds(d *dataDir) error {
	notes, err := filepath.Glob(filepath.Join(d.file(kfakeParts), "*", endName))
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	for _, note := range notes {
		if err := restoreEnd(note); err != nil {
			return fmt.Errorf("cluster: restore the end of an emptied log: %w", err)
		}
	}
	return nil
}

func restoreEnd(note string) error {
	dir := filepath.Dir(note)
	if holds, err := holdsRecords(dir); err != nil || holds {
		return err
	}
	raw, err := os.ReadFile(note)
	if err != nil {
		return err
	}
	end, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil {
		return fmt.Errorf("%s: %w", note, err)
	}
	snapshot, err := json.Marshal(emptySnapshot(end))
	if err != nil {
		return err
	}
	segment := filepath.Join(dir, strconv.FormatInt(end, 10))
	return errors.Join(
		os.WriteFile(filepath.Join(dir, kfakeSnapshot), snapshot, 0o644),
		os.WriteFile(segment+".idx", nil, 0o644),
		os.WriteFile(segment+".dat", nil, 0o644), // the last: without it, everything is written again
	)
}

// holdsRecords reports whether some segment of a log is more than the empty one that an earlier start has made.
func holdsRecords(dir string) (bool, error) {
	bases, err := segmentBases(dir)
	if err != nil {
		return false, err
	}
	for _, base := range bases {
		info, err := os.Stat(filepath.Join(dir, strconv.FormatInt(base, 10)+".dat"))
		if err != nil {
			return false, err
		}
		if info.Size() > 0 {
			return true, nil
		}
	}
	return false, nil
}

// emptySnapshot is kfake's description of a log that holds one segment without records.
func emptySnapshot(end int64) any {
	return map[string]any{
		"version":            1,
		"high_watermark":     end,
		"last_stable_offset": end,
		"log_start_offset":   end,
		"created_at":         time.Now(),
		"segments":           []any{map[string]any{"base_offset": end, "size": 0}},
	}
}
