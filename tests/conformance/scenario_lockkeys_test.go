package conformance

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
)

// keyCases test which keys a request locks.
func keyCases() []testCase {
	return []testCase{
		{"key in the body, which the handler reads whole", everywhere, keyInBody},
		{"idempotency key: its two forms are one key, that of one user", everywhere, idempotencyKey},
		{"several keys are all held", everywhere, severalKeys},
		{"several keys: one lease for each key, in order", everywhere, leasesInOrder},
		{"several keys: one is busy, none stays locked", everywhere, severalKeysOneBusy},
		{"a body that was read before the lock is reported once", earlyBodies, bodyGoneBeforeLock},
		{"several keys in both directions", everywhere, severalKeysBothWays},
	}
}

func keyInBody(e *environment) {
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

// While a request runs, its copy is refused in both forms of the key. A request of another
// user with the same key is not refused.
func idempotencyKey(e *environment) {
	joined := fmt.Sprintf("%d:%s%d:%s", len(secondKey), secondKey, len(theKey), theKey)
	quoted := []string{`"` + theKey + `"`}
	var s *routeClient
	s = e.serve(route{
		locks: []lock{{keys: []key{byUser}}},
		handler: func(c call) {
			lease, _ := c.Lease()
			if lease.Key() == joined {
				s.wantRefusal(request{idempotencyKeys: quoted, second: secondKey}, e.rowOf(refused(core.ErrBusy, time.Second)))
				s.wantReply(request{idempotencyKeys: quoted, second: "another user"}, "done")
			}
			c.Reply("done")
		},
	})
	s.wantReply(request{idempotencyKeys: []string{theKey}, second: secondKey}, "done")
}

// The lease in the context is that of the first key, in any order of keys.
func severalKeys(e *environment) {
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

// The leases are in the order of the arguments, in any order of keys. The one that is
// skipped is nil.
func leasesInOrder(e *environment) {
	skip := given("", core.ErrSkip)
	s := e.serve(route{
		locks: []lock{{keys: []key{bySecond, skip, byHeader}, options: []core.Option{core.WithFencing(true)}}},
		handler: func(c call) {
			leases := c.Leases()
			if len(leases) != 3 || leases[0].Key() != secondKey || leases[1] != nil || leases[2].Key() != theKey {
				e.Errorf("the leases are %v", leases)
			} else if leases[0].Fence() == 0 || leases[2].Fence() == 0 {
				e.Errorf("the fences are %d and %d", leases[0].Fence(), leases[2].Fence())
			}
			c.Reply("done")
		},
	})
	s.wantReply(plain, "done")
}

func severalKeysOneBusy(e *environment) {
	s := e.serve(route{locks: []lock{{keys: []key{byHeader, bySecond}}}})
	e.take(secondKey)
	s.wantRefusal(plain, e.rowOf(refused(core.ErrBusy, time.Second)))
	if e.held(theKey) {
		e.Error("the other key stays locked")
	}
}

// Requests for a and b, and requests for b and a, exclude each other without a deadlock.
func severalKeysBothWays(e *environment) {
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

// unlockedCases test requests that run without their lock, by an option or an error.
func unlockedCases() []testCase {
	skip := key{from: func() (string, error) { return "", core.ErrSkip }}
	return []testCase{
		{"ErrSkip runs without a lock", everywhere, func(e *environment) {
			e.take(theKey)
			runsUnlocked(e, lock{keys: []key{skip}})
		}},
		{"ErrSkip of one key leaves the other locked", everywhere, func(e *environment) {
			s := e.serve(route{
				locks: []lock{{keys: []key{skip, byHeader}}},
				handler: func(c call) {
					if lease, _ := c.Lease(); lease.Key() != theKey || !e.held(theKey) {
						e.Errorf("the lease is that of %q", lease.Key())
					}
					c.Reply("done")
				},
			})
			s.wantReply(plain, "done")
		}},
		{"FailOpen runs without Redis", everywhere, func(e *environment) {
			e.proxy.Refuse(true)
			runsUnlocked(e, lock{keys: []key{byHeader}, options: []core.Option{core.WithFailOpen(true)}})
			e.events.await(e.T, core.Unlocked, 1)
		}},
	}
}

// runsUnlocked checks that a request runs without a lease, and that its context is not that of
// a lease.
func runsUnlocked(e *environment, l lock) {
	s := e.serve(route{
		locks: []lock{l},
		handler: func(c call) {
			if lease, ok := c.Lease(); ok || lease != nil {
				e.Errorf("there is a lease of %q", lease.Key())
			}
			if c.Context().Err() != nil {
				e.Errorf("the context has ended: %v", c.Context().Err())
			}
			c.Reply("done")
		},
	})
	s.wantReply(plain, "done")
	if n := e.events.count(core.Acquired); n != 0 {
		e.Errorf("%d leases", n)
	}
}
