package core

import (
	"fmt"
	"math"
	"time"
)

// minRetention is the shortest time for which it makes sense to keep an answer.
const minRetention = time.Second

// A Policy says what to do with a request whose earlier attempt died in the
// middle, so that nobody knows whether it took effect.
type Policy int

// The policies.
const (
	// Reject does not run it: it gets ErrInterrupted, until Resolve has freed
	// the key, or the record is forgotten after the time of WithRetention.
	Reject Policy = iota
	// Rerun runs it. Attempt.Number tells the handler that there was an earlier
	// attempt, which may still be running if it has lost its lease.
	Rerun
)

// WithRetention sets how long the record of an idempotent request is kept, with
// its answer: 24 h if not set, at least 1 s. A request that comes later runs as
// if it were the first. It counts from the end of the request, and for one that
// died from the last renewal of its lease. A time below that of WithTTL counts as
// that.
func WithRetention(d time.Duration) Option {
	return option(func(s *settings) error {
		s.retention = d
		return within("WithRetention", d, minRetention, math.MaxInt64)
	})
}

// WithInterrupted sets what to do with an idempotent request whose earlier
// attempt died in the middle: Reject if not set.
func WithInterrupted(p Policy) Option {
	return option(func(s *settings) error {
		if p != Reject && p != Rerun {
			return fmt.Errorf("reqlock: WithInterrupted: %d is no policy", p)
		}
		s.interrupted = p
		return nil
	})
}

// WithMaxRecord sets how many bytes of an idempotent request's answer are kept:
// 1 MiB if not set, at least 1. A request with a longer answer is done all the
// same, and never runs again, but later requests with its key get
// ErrUnreplayable.
func WithMaxRecord(bytes int) Option {
	return option(func(s *settings) error {
		if bytes < 1 {
			return fmt.Errorf("reqlock: WithMaxRecord: %d is below 1", bytes)
		}
		s.maxRecord = bytes
		return nil
	})
}

// FailsOpen reports whether requests run without their lock when Redis is
// unavailable: see WithFailOpen. A middleware for which that would be wrong can
// refuse such a Locker.
func (l *Locker) FailsOpen() bool { return l.settings.failOpen }
