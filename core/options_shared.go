package core

import (
	"fmt"

	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/engine"
)

// WithPermits sets how many leases of a key there may be at the same time, in all processes: no
// permits if not set, at least 1, at most 999,999,999. Each lease holds one of n permits. A
// caller waits while n leases are held, or gets ErrBusy if it may not wait. Key.Permits sets the
// number for one key of a middleware.
//
// Processes with different numbers, as during a deploy, each obey their own number: a process
// takes a permit while fewer leases than its own number are held. No lease is revoked. A lease
// without permits, and a lock of another client, exclude all permits and are excluded by each
// of them. If a process crashes, only its own permits stay taken, until their TTL ends.
//
// A single permit differs from a lock in one way: it counts together with permits of other
// numbers. Beside the one lease of WithPermits(1), there may be leases of WithPermits(2).
//
// WithPermits and WithShared set the same thing, so the later of the two counts. WithPermits
// does not combine with WithMinHold, nor with WithFencing if n is above 1, because the numbers
// of leases that overlap do not rise from holder to holder: New and With refuse the pair, and a
// middleware panics for a key with Permits. The Idempotent middlewares and Begin refuse it.
// NewQuorum refuses this option.
func WithPermits(n int) Option {
	return ofShared("WithPermits", func(s *settings) error {
		if !isPermits(n) {
			return fmt.Errorf("reqlock: WithPermits: %d is not from 1 to %d", n, engine.MaxLimit)
		}
		s.limit = engine.Limit(n)
		return nil
	})
}

// WithShared sets whether leases of a key are shared: off if not set. Any number of shared
// leases is held at the same time, in all processes, but none beside a lease without the
// option. So callers with WithShared are readers, and callers without it are writers.
// Key.Shared sets it for one key of a middleware.
//
// A writer waits for the readers that hold the key, and readers that come later wait for the
// writer. A writer that may not wait gets ErrBusy as long as there are readers, so give writers
// a wait.
//
// Shared leases do not combine with WithMinHold. With WithFencing, all readers that overlap have
// the same number, and the number of the next writer is higher: the number says that there was
// no writer since. The Idempotent middlewares and Begin refuse shared leases. NewQuorum refuses
// this option. WithShared(false) also switches WithPermits off.
func WithShared(on bool) Option {
	if !on {
		return option(func(s *settings) error {
			s.limit = engine.Exclusive
			return nil
		})
	}
	return ofShared("WithShared", func(s *settings) error {
		s.limit = engine.Unlimited
		return nil
	})
}

// ofShared returns an option that has an effect on plain locks only.
func ofShared(name string, set option) Option {
	return scopedOption{option: set, name: name, on: bridge.Locks}
}
