package core

import (
	"fmt"
	"time"
)

// An Option is a setting of a Locker, for New, With and the adapters'
// middlewares. Later ones win over earlier ones.
type Option interface {
	// ReqlockOption marks the options of reqlock and of its adapters, which
	// take both kinds in one list.
	ReqlockOption()
	apply(*settings) error
}

// option is a setting that a view may change too.
type option func(*settings) error

// ReqlockOption marks an option.
func (option) ReqlockOption() {}

func (o option) apply(s *settings) error { return o(s) }

// rootOption is a setting of the root Locker alone.
type rootOption struct {
	name string
	set  func(*root) error
}

// ReqlockOption marks an option.
func (rootOption) ReqlockOption() {}

func (o rootOption) apply(s *settings) error { return o.set(&s.root) }

// WithTTL sets how long a lease lives without a renewal: 10 s if not set, at
// least 100 ms, at most ten years. It bounds how long a key stays locked after its holder
// crashed. Renewal extends the lease for as long as the holder runs.
func WithTTL(ttl time.Duration) Option {
	return option(func(s *settings) error {
		s.ttl = ttl
		return within("WithTTL", ttl, minTTL, maxTTL)
	})
}

// WithWait sets how long to wait for a lock that another holds; 0 is not at
// all. Without it Lock, Do and DoAll wait until their context ends, while
// Enter and the middlewares do not wait. A wait that is over before Redis has
// answered at all ends with ErrUnavailable: nobody can say that the key is held.
func WithWait(wait time.Duration) Option {
	return option(func(s *settings) error {
		if wait < 0 {
			return fmt.Errorf("reqlock: WithWait: %v is negative", wait)
		}
		s.wait = wait
		return nil
	})
}

// WithRenewal sets whether a lease is renewed, at a third of its TTL, for as
// long as it is held. It is on if not set. Without renewal the lease's context
// ends with ErrLost shortly before the TTL is over.
func WithRenewal(on bool) Option {
	return option(func(s *settings) error {
		s.renewal = on
		return nil
	})
}

// WithMaxHold sets how long a lease may be held: then its context ends with
// ErrMaxHold, and it is renewed no more. It is at least 1 ms; 0, the default, sets no
// limit.
func WithMaxHold(limit time.Duration) Option {
	return option(func(s *settings) error {
		if limit != 0 && limit < time.Millisecond {
			return fmt.Errorf("reqlock: WithMaxHold: %v is below %v: 0 sets no limit", limit, time.Millisecond)
		}
		s.maxHold = limit
		return nil
	})
}

// WithFencing sets whether each lease gets a fencing number, which Lease.Fence
// returns. It is off if not set. A resource that refuses a number lower than
// the highest it has seen is safe from a holder that acts after its lease
// ended: see Martin Kleppmann, "How to do distributed locking" (2016).
//
// The numbers of a key rise from lease to lease, in all processes, also where
// their counter in Redis is lost: they follow the server's time in microseconds,
// and are never ahead of it. They would fall only if the counter were lost and the
// clock of the server were behind its former time. A process that has lost its lease,
// and does not know it yet, may pass it to its next caller: such a number is lower
// than that of the new holder, and the resource refuses it. All who lock the key need it on:
// within a lease without a number, a nested Lock, Do, Enter or Begin of the same key
// with WithFencing gets ErrNoFence.
func WithFencing(on bool) Option {
	return option(func(s *settings) error {
		s.fencing = on
		return nil
	})
}

// WithFailOpen sets whether Do, DoAll, Enter and the middlewares run without
// the lock when Redis is unavailable. It is off if not set, and Lock and
// TryLock never do it. The observer hears of each run as Unlocked.
func WithFailOpen(on bool) Option {
	return option(func(s *settings) error {
		s.failOpen = on
		return nil
	})
}

// WithRetryAfter sets when a refused caller is told to try again: after 1 s if
// not set, at most 24 h. HTTP rounds it up to whole seconds.
func WithRetryAfter(d time.Duration) Option {
	return option(func(s *settings) error {
		if d <= 0 {
			return fmt.Errorf("reqlock: WithRetryAfter: %v is not positive", d)
		}
		s.retryAfter = d
		return within("WithRetryAfter", d, 0, maxRetryAfter)
	})
}

// within refuses a duration that is below least or above most, for the option named.
func within(option string, d, least, most time.Duration) error {
	switch {
	case d < least:
		return fmt.Errorf("reqlock: %s: %v is below %v", option, d, least)
	case d > most:
		return fmt.Errorf("reqlock: %s: %v is above %v", option, d, most)
	}
	return nil
}
