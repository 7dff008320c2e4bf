package cluster

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/millrace-io/millrace/membership/coordinator"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// groups drives the coordinator machine: one loop goroutine owns it, everybody else posts events to it. The loop never
// waits for anything but the next event, so posting cannot deadlock.
type groups struct {
	machine *coordinator.Machine
	log     *offsetLog
	logger  *slog.Logger

	events chan posted
	stop   chan struct{}
	done   chan struct{}
	lastID atomic.Uint64

	waiting map[uint64]chan<- kmsg.Response       // loop only
	forcing map[uint64]chan<- *coordinator.Forced // loop only
}

// posted is an event on its way to the loop; reply belongs to a request, forced to a forced rebalance. Without an event it
// looks at the machine, or takes a request's reply back.
type posted struct {
	event  coordinator.Event
	reply  chan<- kmsg.Response
	forced chan<- *coordinator.Forced
	look   func(*coordinator.Machine)
	forget uint64
}

func newGroups(cfg config, logger *slog.Logger) (*groups, error) {
	delay := cfg.rebalanceDelay
	if delay == 0 {
		delay = -1 // the machine reads 0 as Kafka's default
	}
	machineConfig := coordinator.Config{
		Profile:               cfg.profile,
		NewID:                 func(string) string { return newUUID() },
		MinSessionTimeout:     minSessionTimeout,
		MaxSessionTimeout:     maxSessionTimeout,
		InitialRebalanceDelay: delay,
		OffsetsPartitions:     offsetsPartitions,
	}
	if err := machineConfig.Validate(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return &groups{
		machine: coordinator.New(machineConfig),
		logger:  logger,
		events:  make(chan posted, 64),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
		waiting: map[uint64]chan<- kmsg.Response{},
		forcing: map[uint64]chan<- *coordinator.Forced{},
	}, nil
}

// newUUID returns a random UUID, version 4, which is what Kafka ends a member id with.
func newUUID() string {
	var id [16]byte
	rand.Read(id[:])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// serve hands a client's request to the machine and waits for the answer, for as long as a JoinGroup parks.
func (g *groups) serve(gone <-chan struct{}, clientID, host string, req kmsg.Request) (kmsg.Response, error) {
	reply := make(chan kmsg.Response, 1) // the loop must not wait for a client that left
	event := coordinator.Request{ID: g.lastID.Add(1), ClientID: clientID, Host: host, Req: req}
	select {
	case g.events <- posted{event: event, reply: reply}:
	case <-gone:
		return nil, net.ErrClosed
	case <-g.done:
		return nil, net.ErrClosed
	}
	select {
	case resp := <-reply:
		return resp, nil
	case <-gone:
		// The machine may never answer it: Kafka's rules leave a JoinGroup unanswered that its member has repeated.
		g.send(posted{forget: event.ID})
		return nil, net.ErrClosed
	case <-g.done:
		return nil, net.ErrClosed
	}
}

// post hands an event of the cluster itself to the machine.
func (g *groups) post(event coordinator.Event) { g.send(posted{event: event}) }

func (g *groups) send(p posted) {
	select {
	case g.events <- p:
	case <-g.done:
	}
}

// run is the loop goroutine.
func (g *groups) run() {
	defer close(g.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if at, ok := g.machine.NextDeadline(); ok {
			timer.Reset(time.Until(at))
		} else {
			timer.Stop()
		}
		select {
		case in := <-g.events:
			g.take(in)
		case <-timer.C:
			g.step(coordinator.Tick{})
		case <-g.stop:
			return
		}
	}
}

func (g *groups) take(in posted) {
	switch event := in.event.(type) {
	case nil:
		if in.look != nil {
			in.look(g.machine)
		}
		delete(g.waiting, in.forget)
		return
	case coordinator.Request:
		g.waiting[event.ID] = in.reply
	case coordinator.ForceRebalance:
		g.forcing[event.ID] = in.forced
	}
	g.step(in.event)
}

func (g *groups) step(event coordinator.Event) {
	for _, action := range g.machine.Step(time.Now(), event) {
		switch action := action.(type) {
		case *coordinator.Reply:
			if reply, ok := g.waiting[action.ID]; ok {
				reply <- action.Resp
				delete(g.waiting, action.ID)
			}
		case *coordinator.Append:
			g.log.enqueue(*action)
		case *coordinator.Forced:
			g.forcing[action.ID] <- action
			delete(g.forcing, action.ID)
		case *coordinator.BadRecord:
			g.logger.Error("a record of the offsets topic was left out", "topic", offsetsTopic, "reason", action.Err)
		}
	}
}

// close ends the loop. Requests that are parked end with their connections.
func (g *groups) close() {
	close(g.stop)
	<-g.done
}
