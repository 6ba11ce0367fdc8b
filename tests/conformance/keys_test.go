package conformance

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
)

// keyCases are about which keys a request locks.
func keyCases() []testCase {
	return []testCase{
		{"key in the body, which the handler reads whole", everywhere, keyInBody},
		{"idempotency key: its two forms are one key, that of one user", everywhere, idempotencyKey},
		{"several keys are all held", everywhere, severalKeys},
		{"several keys: one is busy, none stays locked", everywhere, severalKeysOneBusy},
		{"several keys in both directions", everywhere, severalKeysBothWays},
	}
}

func keyInBody(e *env) {
	s := e.serve(route{
		locks: []lock{{keys: []key{byBody}}},
		handler: func(c call) {
			if body, err := c.Body(); body != theKey || err != nil {
				e.Errorf("the handler reads %q, %v", body, err)
			}
			if lease, _ := c.Lease(); lease.Key() != theKey || !e.held(theKey) {
				e.Errorf("the lease is that of %q", lease.Key())
			}
			c.Reply("done")
		},
	})
	s.wantReply(request{body: theKey}, "done")
	s.wantRefusal(request{}, e.rowOf(refused(core.ErrNoKey, 0)))
}

// While a request runs its copy is refused, however it writes the key, and the
// request of another user with that key is not.
func idempotencyKey(e *env) {
	joined := fmt.Sprintf("%d:%s%d:%s", len(secondKey), secondKey, len(theKey), theKey)
	quoted := []string{`"` + theKey + `"`}
	var s *site
	s = e.serve(route{
		locks: []lock{{keys: []key{byUser}}},
		handler: func(c call) {
			lease, _ := c.Lease()
			if lease.Key() == joined {
				s.wantRefusal(request{marks: quoted, second: secondKey}, e.rowOf(refused(core.ErrBusy, time.Second)))
				s.wantReply(request{marks: quoted, second: "another user"}, "done")
			}
			c.Reply("done")
		},
	})
	s.wantReply(request{marks: []string{theKey}, second: secondKey}, "done")
}

// The lease in the context is that of the first key, whatever their order.
func severalKeys(e *env) {
	s := e.serve(route{
		locks: []lock{{keys: []key{bySecond, byHeader}}},
		handler: func(c call) {
			if !e.held(theKey) || !e.held(secondKey) {
				e.Error("the handler runs, and a key is free")
			}
			if lease, _ := c.Lease(); lease.Key() != secondKey {
				e.Errorf("the lease is that of %q", lease.Key())
			}
			c.Reply("done")
		},
	})
	s.wantReply(plain, "done")
}

func severalKeysOneBusy(e *env) {
	s := e.serve(route{locks: []lock{{keys: []key{byHeader, bySecond}}}})
	e.take(secondKey)
	s.wantRefusal(plain, e.rowOf(refused(core.ErrBusy, time.Second)))
	if e.held(theKey) {
		e.Error("the other key stays locked")
	}
}

// Requests for a and b, and for b and a, exclude each other and never wait for
// each other in a ring.
func severalKeysBothWays(e *env) {
	const clients = 12
	running := map[string]*atomic.Int32{"a": {}, "b": {}}
	s := e.serve(route{
		locks: []lock{{
			keys:    []key{byHeader, bySecond},
			options: []core.Option{core.WithWait(patience)},
		}},
		handler: func(c call) {
			for name, n := range running {
				if n.Add(1) != 1 {
					e.Errorf("two requests run with the key %s", name)
				}
				defer n.Add(-1)
			}
			if e.events.count(core.Acquired) <= 2 { // this one is the first
				e.events.await(e.T, core.Waiting, clients-1)
			}
			c.Reply("done")
		},
	})
	var sent sync.WaitGroup
	for i := range clients {
		r := request{keys: []string{"a"}, second: "b"}
		if i%2 == 1 {
			r = request{keys: []string{"b"}, second: "a"}
		}
		sent.Go(func() { s.wantReply(r, "done") })
	}
	sent.Wait()
}
