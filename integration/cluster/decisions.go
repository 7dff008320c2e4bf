package cluster

import (
	"encoding/binary"
)

// decisions know how the transactions end that a crash has cut: as the markers say that some of their partitions have
// already, else as their producers had asked for (see [intents]), else they are aborted.
type decisions struct {
	asked map[int64]intent   // by producer id
	told  map[int64]decision // the newest marker of a producer, in any log
}

// A decision is what a marker says.
type decision struct {
	epoch  int16
	commit bool
}

func readDecisions(d *dataDir) (*decisions, error) {
	asked, err := readIntents(d)
	return &decisions{asked: asked, told: map[int64]decision{}}, err
}

// note takes a marker.
func (d *decisions) note(producerID int64, epoch int16, commit bool) {
	if newest, ok := d.told[producerID]; !ok || epoch >= newest.epoch {
		d.told[producerID] = decision{epoch, commit}
	}
}

// of says how an open transaction of a producer ends, and whether it has ended in some partition.
//
// A marker with a higher epoch is the abort of a time-out, which raises the epoch first: it may have overtaken the EndTxn
// that was asked for. One with the same epoch is of this transaction only if no other had the epoch.
func (d *decisions) of(producerID int64, epoch int16) (commit, half bool) {
	asked, ok := d.asked[producerID]
	ok = ok && asked.producerEpoch == epoch
	told, marked := d.told[producerID]
	switch {
	case marked && told.epoch > epoch:
		return false, true
	case ok && asked.ownEpoch && marked && told.epoch == epoch:
		return told.commit, true
	case ok:
		return asked.commit, false
	}
	return false, false
}

// commits reports whether a control batch is the marker of a commit. What is not to be understood is no commit.
func commits(batch []byte) bool {
	const keyTypeAt = batchHeaderSize + 7 // behind length, attributes, two deltas, the key's length, its version
	if len(batch) < keyTypeAt+2 {
		return false
	}
	return binary.BigEndian.Uint16(batch[keyTypeAt:]) == 1
}
