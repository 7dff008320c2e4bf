package cluster

// A router decides what becomes of a frame.
type router interface {
	// route is asked once a frame, before its body is read. An error closes the connection.
	route(fr frame) (destination, error)

	// look is asked about a frame for which route said whole; raw is the whole frame. It fills in what it finds in it.
	look(fr *frame, raw []byte) (destination, error)

	// answer handles a frame for which it was said local or inspect; raw is the whole frame. Without an answer the frame
	// goes to kfake. It may block as long as a JoinGroup parks; gone is closed when the connection is.
	answer(gone <-chan struct{}, host string, fr frame, raw []byte) (verdict, error)

	// after returns what is to be done between kfake's answer to a request and the client's sight of it.
	after(fr frame) after
}

type destination uint8

const (
	toKfake destination = iota
	local               // answered by the router
	inspect             // the router may answer it, or do something first
	whole               // the router decides when it sees the body
)

// An after is given the whole response frame.
type after func(response []byte)

// A verdict is what a router makes of a frame that it has looked into.
type verdict struct {
	answer []byte // a whole response frame; nil passes the request on to kfake
	after  after  // of a request that is passed on; nil means router.after
}
