package conformance

import (
	"context"
	"slices"

	"github.com/reqlock/reqlock/core"
)

// nestingCases put several locks around one handler.
func nestingCases() []testCase {
	first, second := lock{keys: []key{byHeader}}, lock{keys: []key{bySecond}}
	inBody := lock{keys: []key{byBody}}
	return []testCase{
		{"Do with the same key in the handler", everywhere, doInHandler},
		{"two middlewares, the same key", everywhere, func(e *environment) {
			sameKey(e, route{locks: []lock{first, first}})
		}},
		{"two middlewares, the same key, for the outer one in the body", everywhere, func(e *environment) {
			sameKey(e, route{locks: []lock{inBody, first}})
		}},
		{"two middlewares, the same key, for the inner one in the body", everywhere, func(e *environment) {
			sameKey(e, route{locks: []lock{first, inBody}})
		}},
		{"group and route, the same key", everywhere, func(e *environment) {
			sameKey(e, route{group: []lock{first}, locks: []lock{first}})
		}},
		{"two middlewares, different keys", everywhere, func(e *environment) {
			differentKeys(e, route{locks: []lock{first, second}})
		}},
		{"two middlewares, different keys, the outer one in the body", everywhere, func(e *environment) {
			differentKeys(e, route{locks: []lock{inBody, second}})
		}},
		{"group and route, different keys", everywhere, func(e *environment) {
			differentKeys(e, route{group: []lock{first}, locks: []lock{second}})
		}},
		{"the inner of two is busy, the outer is released", everywhere, innerBusy},
	}
}

// Do runs its function when the handler already holds the key, and does not release the key.
func doInHandler(e *environment) {
	s := e.serve(route{
		locks: []lock{{keys: []key{byHeader}}},
		handler: func(c call) {
			ran := false
			err := e.locks.With(core.WithWait(0)).Do(c.Context(), theKey, func(context.Context) error {
				ran = true
				return nil
			})
			if err != nil || !ran || !e.held(theKey) {
				e.Errorf("Do: %v; it ran: %v; the key is held: %v", err, ran, e.held(theKey))
			}
			c.Reply("done")
		},
	})
	s.wantReply(plain, "done")
	e.wantLeases(theKey)
}

// The outer of two middlewares with one key locks and releases it.
func sameKey(e *environment, r route) {
	r.outer = func(f frame) {
		f.Next()
		if e.held(theKey) {
			e.Error("the key is locked after the handler has returned")
		}
	}
	r.handler = func(c call) {
		if lease, _ := c.Lease(); lease.Key() != theKey || !e.held(theKey) {
			e.Errorf("the lease is that of %q; the key is held: %v", lease.Key(), e.held(theKey))
		}
		c.Reply("done")
	}
	s := e.serve(r)
	s.wantReply(plain, "done")
	e.wantLeases(theKey)
}

// Different keys are locked from the outside inwards, and released in reverse.
func differentKeys(e *environment, r route) {
	r.handler = func(c call) {
		if !e.held(theKey) || !e.held(secondKey) {
			e.Error("the handler runs, and a key is free")
		}
		if lease, _ := c.Lease(); lease.Key() != secondKey {
			e.Errorf("the lease is that of %q, not the innermost", lease.Key())
		}
		c.Reply("done")
	}
	s := e.serve(r)
	s.wantReply(plain, "done")
	e.wantLeases(theKey, secondKey)
}

// A refusal by the inner lock also releases the outer lock.
func innerBusy(e *environment) {
	s := e.serve(route{
		group: []lock{{keys: []key{byHeader}}},
		locks: []lock{{keys: []key{bySecond}}},
	})
	e.take(secondKey)
	s.wantRefusal(plain, e.rowOf(refused(core.ErrBusy, defaultRetryAfter)))
	e.wantLeases(theKey)
}

// wantLeases waits until exactly these keys were locked once each in this order, and released
// in reverse.
func (e *environment) wantLeases(keys ...string) {
	e.Helper()
	released := keysOf(e.events.await(e.T, core.Released, len(keys)))
	slices.Reverse(released)
	all, _ := e.events.of(core.Acquired)
	if acquired := keysOf(all); !slices.Equal(acquired, keys) || !slices.Equal(released, keys) {
		e.Errorf("acquired %q, released in reverse %q, want %q", acquired, released, keys)
	}
}

// keysOf returns the keys of events.
func keysOf(events []core.Event) (keys []string) {
	for _, event := range events {
		keys = append(keys, event.Key.Raw())
	}
	return keys
}
