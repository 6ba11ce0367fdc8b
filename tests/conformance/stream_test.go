package conformance

import (
	"time"

	"github.com/reqlock/reqlock/core"
)

// streamCases are about answers that take long: no part of one runs unlocked.
func streamCases() []testCase {
	return []testCase{
		{"a stream holds the lock to its end", streams, streaming},
		{"a stream, with the key in the body", streams, streamingByBody},
		{"a hijacked connection holds the lock", hijacking, hijacked},
	}
}

func streaming(e *env)       { streamUnder(e, byHeader) }
func streamingByBody(e *env) { streamUnder(e, byBody) }

// streamUnder serves two pieces under a lock and looks at the lock between
// them.
func streamUnder(e *env, k key) {
	goOn := make(chan struct{})
	defer close(goOn)
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
				await(e.T, "the stream may go on", goOn)
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
		give(e.T, "the stream may go on", goOn)
	}
	if got := answer.rest(); !got.ok {
		e.Errorf("the stream ends with %+v", got)
	}
	e.events.await(e.T, core.Released, 1)
	if e.held(theKey) {
		e.Error("the stream has ended, and the key is locked")
	}
}

// The client has its whole answer, and the handler still runs.
func hijacked(e *env) {
	goOn := make(chan struct{})
	defer close(goOn)
	s := e.serve(route{
		locks: []lock{{keys: []key{byHeader}}},
		handler: func(c call) {
			if err := c.Hijack("done"); err != nil {
				e.Errorf("Hijack: %v", err)
			}
			await(e.T, "the handler may end", goOn)
		},
	})
	s.wantReply(plain, "done")
	if !e.held(theKey) {
		e.Error("the handler runs, and the key is free")
	}
	s.wantRefusal(plain, e.rowOf(refused(core.ErrBusy, time.Second)))
	give(e.T, "the handler may end", goOn)
	e.events.await(e.T, core.Released, 1)
}
