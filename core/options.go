package core

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/internal/bridge"
)

// An Option is a setting of a Locker, for New, With and the adapters' middlewares. A later
// option overrides an earlier one. New and With accept an option for any adapter. A middleware
// refuses an option in its own list that has no effect on its requests, or that is another
// adapter's.
type Option interface {
	apply(s *settings) error
}

// option is a setting that a view can change.
type option func(*settings) error

func (o option) apply(s *settings) error { return o(s) }

// scopedOption is a setting that a view can change. It has an effect on the requests of some
// middlewares only. The others refuse it: see viewFor.
type scopedOption struct {
	option
	name    string
	adapter string            // the adapter whose option it is, or "" for core
	on      bridge.Middleware // the middlewares
	instead string            // what to write with an RPC adapter, whose name is its %s; "" to leave it out
}

// rootOption is a setting that only New and NewQuorum accept, or one of them.
type rootOption struct {
	name string
	by   string // the functions that accept it
	set  func(*root) error
}

func (o rootOption) apply(s *settings) error { return o.set(&s.root) }

// WithTTL sets how long a lease lasts without a renewal: 10 s if not set, at least 100 ms, at
// most ten years. It limits how long a key stays locked after its holder has crashed.
// Renewals extend the lease while the holder runs.
func WithTTL(ttl time.Duration) Option {
	return option(func(s *settings) error {
		s.ttl = ttl
		return within("WithTTL", ttl, minTTL, maxTTL)
	})
}

// WithWait sets how long to wait for a lock that is held. It is at least 1 ms, or 0 not to
// wait. If not set, callers of Lock, LockAll, Do and DoAll wait until their context ends, and
// Enter, Begin and the middlewares do not wait. TryLock never waits. Round a wait that is
// computed, such as what is left of a deadline, up to 1 ms. If the wait ends before the first
// reply of Redis, the error is ErrUnavailable, because it is unknown whether the key is held.
//
// Make the wait of a middleware shorter than the WriteTimeout and the ReadTimeout of its
// http.Server, which run on while a request waits. Otherwise a request that has waited too
// long gets no answer, or its handler cannot read the body. The middleware of an HTTP adapter
// sends a Warned event if it finds such a server.
func WithWait(wait time.Duration) Option {
	return option(func(s *settings) error {
		if wait < 0 {
			return fmt.Errorf("reqlock: WithWait: %v is negative", wait)
		}
		s.wait = wait
		return checkUnit("WithWait", wait, 0)
	})
}

// WithRenewal sets whether a lease is renewed while it is held, each time a third of its TTL
// has passed. It is on if not set. Without renewal, the lease's context ends with ErrLost
// shortly before the TTL ends.
func WithRenewal(on bool) Option {
	return option(func(s *settings) error {
		s.renewal = on
		return nil
	})
}

// WithMaxHold sets how long a lease may be held: no limit if not set, at least 1 ms, or 0 for
// no limit. After that time, the lease's context ends with ErrMaxHold, and the lease is not
// renewed again.
func WithMaxHold(limit time.Duration) Option {
	return option(func(s *settings) error {
		if limit < 0 {
			return fmt.Errorf("reqlock: WithMaxHold: %v is below %v: 0 sets no limit", limit, time.Millisecond)
		}
		s.maxHold = limit
		return checkUnit("WithMaxHold", limit, 0)
	})
}

// WithMinHold keeps a key locked for at least this time from the grant: off if not set, at
// least 1 ms, at most ten years, or 0 to switch it off. If the lease is released before, the
// key stays locked for the rest of the time, and no waiter gets it meanwhile. The option is
// for work that should not run twice in that time, such as the same cron job on several
// machines, or a second click.
//
// Release returns as usual. During the rest no process holds the key: its value is
// "reqlock-min-hold", and waiters get the key at the end. If the process dies while it holds
// the lease, the key stays for the rest of its TTL only. If Redis does not reply to the
// release, the key may be freed before. If DoAll, Enter or a middleware gets only some of
// several keys, it frees them at once.
//
// Callers that may wait, as those of Do and Lock without WithWait(0), take the lock and run
// when the hold has ended. A job that fails keeps its key for the rest of the time, too: a
// retry gets ErrBusy, or waits.
//
// The option has no effect on idempotent requests, whose record keeps them from running
// twice: the Idempotent middlewares refuse it. It has no effect on nested leases either.
// NewQuorum refuses this option.
func WithMinHold(least time.Duration) Option {
	set := option(func(s *settings) error {
		s.minHold = least
		if least == 0 {
			return nil
		}
		return within("WithMinHold", least, time.Millisecond, maxTTL)
	})
	if least == 0 {
		return set
	}
	return scopedOption{option: set, name: "WithMinHold", on: bridge.Locks}
}

// WithMaxWaiters limits how many callers of this process wait for one key: 1024 if not set,
// at least 1. A caller above the limit gets ErrQueueFull at once. All callers of the key
// count, also the callers of other views and middlewares. It has no effect on callers that do
// not wait: those of a middleware without WithWait.
func WithMaxWaiters(n int) Option {
	return option(func(s *settings) error {
		if n < 1 {
			return fmt.Errorf("reqlock: WithMaxWaiters: %d is below 1", n)
		}
		s.maxWaiters = n
		return nil
	})
}

// WithFencing sets whether each lease gets a fencing number, which Lease.Fence returns. It is
// off if not set. A resource that refuses every number below the highest number it has seen
// is safe from a holder that acts after the end of its lease: see Martin Kleppmann, "How to
// do distributed locking" (2016).
//
// The numbers of a key rise from lease to lease, in all processes. They rise also if their
// counter in Redis is lost, because they follow the server's time in microseconds and are
// never ahead of it. Exception: they fall if the counter is lost and the server's clock is
// behind its former time.
//
// A process may lose its lease, and pass it to its next caller before it detects the loss.
// The number of that caller is lower than the number of the new holder, so the resource
// refuses it.
//
// Set WithFencing everywhere the key is locked. Under a lease without a number, a nested
// Lock, Do, Enter or Begin of the same key with WithFencing gets ErrUpgrade. Shared leases that
// overlap have the same number, and WithPermits above 1 is refused: see WithShared. NewQuorum
// refuses this option.
func WithFencing(on bool) Option {
	return option(func(s *settings) error {
		s.fencing = on
		return nil
	})
}

// WithFailOpen sets whether Do, DoAll, Enter and the middlewares run without the lock if
// Redis is unavailable. It is off if not set. It has no effect on Lock and TryLock. The
// observer receives an Unlocked event for each key of such a run.
func WithFailOpen(on bool) Option {
	return option(func(s *settings) error {
		s.failOpen = on
		return nil
	})
}

// WithRetryAfter sets after how long a refused caller should retry: 1 s if not set, at least
// 1 ms, at most 24 h. HTTP rounds it up to whole seconds.
func WithRetryAfter(d time.Duration) Option {
	return option(func(s *settings) error {
		if d <= 0 {
			return fmt.Errorf("reqlock: WithRetryAfter: %v is not positive", d)
		}
		s.retryAfter = d
		return within("WithRetryAfter", d, 0, maxRetryAfter)
	})
}

// WithName sets the name of locks in events, such as "payments": that of Named, or the route of an
// idempotent request, if not set. See Event.Name. It wins over Named, and applies to all keys of a
// request. It is never part of a key: unlike Named, it can be added and changed at any time, and a
// stored request stays a stored one.
//
// A name consists of letters, digits, "-", "_", "." and "/", and does not begin with a digit. A
// program should have few names, because metrics have a series for each of them.
func WithName(name string) Option {
	return option(func(s *settings) error {
		if !isName(name) {
			return fmt.Errorf("reqlock: WithName: %q is no name: use letters, digits, '-', '_', '.' and '/', and do not begin with a digit", name)
		}
		s.name = name
		return nil
	})
}

// within refuses a duration below least or above most. The error names the option.
func within(option string, d, least, most time.Duration) error {
	if err := checkUnit(option, d, least); err != nil {
		return err
	}
	switch {
	case d < least:
		return fmt.Errorf("reqlock: %s: %v is below %v", option, d, least)
	case d > most:
		return fmt.Errorf("reqlock: %s: %v is above %v", option, d, most)
	}
	return nil
}

// leastUnit is the shortest duration that an option accepts, except 0. A shorter one was
// mostly written without a unit.
const leastUnit = time.Millisecond

// checkUnit refuses a positive duration below leastUnit. The error names the option, and the
// shortest duration that it accepts.
func checkUnit(option string, d, least time.Duration) error {
	if d <= 0 || d >= leastUnit {
		return nil
	}
	return fmt.Errorf("reqlock: %s: %v is below %v: a number without a unit counts nanoseconds, so write a unit, as in 5*time.Second",
		option, d, max(least, leastUnit))
}
