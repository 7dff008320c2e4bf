package cluster

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// epochs knows the newest epoch that each producer was given, to keep fenced producers from kfake. kfake refuses their
// batches too, but before it looks at the epoch it adds the partition to the transaction of that producer id: the
// fenced one's successor finds itself with an open transaction that it does not know of, and is fenced in turn when
// that times out.
//
// What it knows may lag (a time-out raises an epoch unseen, and a restart forgets all): then kfake decides as always.
type epochs struct {
	mu     sync.RWMutex
	newest map[int64]int16 // by producer id
}

func newEpochs() *epochs { return &epochs{newest: map[int64]int16{}} }

// stale reports whether a producer has been given a newer epoch.
func (e *epochs) stale(p producer) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	newest, ok := e.newest[p.id]
	return ok && p.epoch < newest
}

// learn reads a response that may give an epoch; the frame's length and correlation id are left to kfake.
func (e *epochs) learn(resp kmsg.Response, version int16, raw []byte) {
	resp.SetVersion(version)
	body := raw[8:]
	if resp.IsFlexible() {
		body = body[1:] // no tags: the response is kfake's
	}
	if err := resp.ReadFrom(body); err != nil {
		return
	}
	switch resp := resp.(type) {
	case *kmsg.InitProducerIDResponse:
		e.note(resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch)
	case *kmsg.EndTxnResponse:
		e.note(resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch)
	}
}

func (e *epochs) note(errorCode int16, id int64, epoch int16) {
	if errorCode != 0 || id < 0 || epoch <= 0 {
		return // an epoch of 0 has no predecessor
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.newest[id] = max(e.newest[id], epoch)
}
