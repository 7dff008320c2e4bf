package cluster

import "testing"

// How a transaction with epoch 5 ends that is open in some partition after a kill.
func TestDecisions(t *testing.T) {
	const id = 7
	marker := func(epoch int16, commit bool) *decision { return &decision{epoch, commit} }
	for name, test := range map[string]struct {
		asked        *intent
		told         *decision
		commit, half bool
	}{
		"nobody asked":                                   {},
		"a commit was asked for":                         {asked: &intent{id, 5, true, true}, commit: true},
		"an abort was asked for":                         {asked: &intent{id, 5, false, true}},
		"the commit of another epoch":                    {asked: &intent{id, 4, true, true}},
		"committed in another partition":                 {asked: &intent{id, 5, true, true}, told: marker(5, true), commit: true, half: true},
		"asked again otherwise, the commit had begun":    {asked: &intent{id, 5, false, true}, told: marker(5, true), commit: true, half: true},
		"a new incarnation had begun to abort":           {asked: &intent{id, 5, true, true}, told: marker(5, false), half: true},
		"timed out before the commit came":               {asked: &intent{id, 5, true, true}, told: marker(6, false), half: true},
		"timed out, old client":                          {asked: &intent{id, 5, true, false}, told: marker(6, false), half: true},
		"old client, the transaction before was aborted": {asked: &intent{id, 5, true, false}, told: marker(5, false), commit: true},
		"the transaction before was committed":           {told: marker(4, true)},
	} {
		d := decisions{asked: map[int64]intent{}, told: map[int64]decision{}}
		if test.asked != nil {
			d.asked[id] = *test.asked
		}
		if test.told != nil {
			d.note(id, 1, !test.told.commit)
			d.note(id, test.told.epoch, test.told.commit)
			d.note(id, 2, !test.told.commit) // in another log, and older
		}
		if commit, half := d.of(id, 5); commit != test.commit || half != test.half {
			t.Errorf("%s: committed %t, half %t", name, commit, half)
		}
	}
}

// The layout that commits relies on is the one that markers are written with, here and by kfake.
func TestMarkerIsRead(t *testing.T) {
	for _, commit := range []bool{true, false} {
		batch := markerBatch(0, 0, CutTxn{ProducerID: 1, ProducerEpoch: 2, Committed: commit})
		if commits(batch) != commit || commits(batch[:batchHeaderSize+8]) {
			t.Errorf("the marker of commit=%t is misread", commit)
		}
	}
}
