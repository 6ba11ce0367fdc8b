package conformance

import (
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// streamCases test answers that take long: the lock is held until their end.
func streamCases() []testCase {
	return []testCase{
		{"a stream holds the lock to its end", streams, streaming},
		{"a stream, with the key in the body", streams, streamingByBody},
		{"a hijacked connection holds the lock", hijacking, hijacked},
	}
}

func streaming(e *environment)       { streamUnder(e, byHeader) }
func streamingByBody(e *environment) { streamUnder(e, byBody) }

// streamUnder serves two pieces under a lock and checks the lock between them.
func streamUnder(e *environment, k key) {
	proceed := make(chan struct{})
	defer close(proceed)
	s := e.serve(route{
		locks: []lock{{keys: []key{k}}},
		handler: func(c call) {
			if body, err := c.Body(); body != theKey || err != nil {
				e.Errorf("the handler reads %q, %v", body, err)
			}
			if lease, _ := c.Lease(); lease.Key() != theKey {
				e.Errorf("the lease is that of %q", lease.Key())
			}
			for _, piece := range []string{"one", "two"} {
				if err := c.Send(piece); err != nil {
					e.Errorf("Send: %v", err)
				}
				suite.ReceiveAnywhere(e.T, "the stream may go on", proceed)
			}
			if !e.held(theKey) {
				e.Error("the stream goes on, and the key is free")
			}
		},
	})
	answer := s.open(e.Context(), plain)
	for _, piece := range []string{"one", "two"} {
		if got, err := answer.next(); got != piece || err != nil {
			e.Errorf("the piece is %q, %v", got, err)
		}
		if !e.held(theKey) {
			e.Error("the stream goes on, and the key is free")
		}
		s.wantRefusal(plain, e.rowOf(refused(core.ErrBusy, time.Second)))
		send(e.T, "the stream may go on", proceed)
	}
	if got := answer.rest(); !got.ok {
		e.Errorf("the stream ends with %+v", got)
	}
	e.events.await(e.T, core.Released, 1)
	if e.held(theKey) {
		e.Error("the stream has ended, and the key is locked")
	}
}

// The client has the complete answer while the handler still runs.
func hijacked(e *environment) {
	proceed := make(chan struct{})
	defer close(proceed)
	s := e.serve(route{
		locks: []lock{{keys: []key{byHeader}}},
		handler: func(c call) {
			if err := c.Hijack("done"); err != nil {
				e.Errorf("Hijack: %v", err)
			}
			suite.ReceiveAnywhere(e.T, "the handler may end", proceed)
		},
	})
	s.wantReply(plain, "done")
	if !e.held(theKey) {
		e.Error("the handler runs, and the key is free")
	}
	s.wantRefusal(plain, e.rowOf(refused(core.ErrBusy, time.Second)))
	send(e.T, "the handler may end", proceed)
	e.events.await(e.T, core.Released, 1)
}
