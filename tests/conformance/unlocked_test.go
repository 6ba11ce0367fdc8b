package conformance

import (
	"github.com/reqlock/reqlock/core"
)

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
