package core

import (
	"fmt"
	"math"
	"time"

	"github.com/reqlock/reqlock/internal/bridge"
)

// minRetention is the shortest retention that is useful.
const minRetention = time.Second

// WithRetention sets how long the record of an idempotent request is kept, with its answer:
// 24 h if not set, at least 1 s. After that, a request with the key runs as if it were the
// first. The time counts from the end of the request. If the attempt died, it counts from
// the last renewal of its lease. A retention below the TTL of WithTTL counts as that TTL.
// Middlewares that only lock refuse the option.
func WithRetention(d time.Duration) Option {
	return ofAttempts("WithRetention", func(s *settings) error {
		s.retention = d
		return within("WithRetention", d, minRetention, math.MaxInt64)
	})
}

// WithRerunUnknown sets whether an idempotent request runs if the outcome of an earlier attempt at
// it is unknown: off if not set. If it is off, the request is refused with ErrOutcomeUnknown, until
// Resolve says what became of it, or the record expires after the time of WithRetention. If it is
// on, the request runs. Attempt.Number shows the handler that there was an earlier attempt. If that
// attempt has lost its lease, it may still run.
//
// WithUnknown, also that of an RPC adapter, says which failures leave the outcome unknown.
// Middlewares that only lock refuse the option.
func WithRerunUnknown(on bool) Option {
	return ofAttempts("WithRerunUnknown", func(s *settings) error {
		s.rerunUnknown = on
		return nil
	})
}

// WithMaxAnswer sets the size in bytes of the largest answer of an idempotent request that is
// stored: 1 MiB if not set, at least 1. A request with a larger answer is also done and does
// not run again, but later requests with its key get ErrUnreplayable. Middlewares that only
// lock refuse the option.
func WithMaxAnswer(bytes int) Option {
	return ofAttempts("WithMaxAnswer", func(s *settings) error {
		if bytes < 1 {
			return fmt.Errorf("reqlock: WithMaxAnswer: %d is below 1", bytes)
		}
		s.maxAnswer = bytes
		return nil
	})
}

// WithClientCancel sets whether the context of an idempotent request's handler ends when the
// client leaves, or at a deadline of the context outside: off if not set. If it is off, the
// handler runs to its end, so that a client that asks again gets its answer. Otherwise a
// handler that was cut off in the middle leaves an unknown outcome. In both cases the request
// does not wait for its key any more when the client leaves.
//
// The loss of the lease, WithMaxHold and Close always end the handler's context. So does the
// end of a context that the handler or a middleware inside has derived from it, and the loss
// of a lock outside. Middlewares that only lock refuse the option.
func WithClientCancel(on bool) Option {
	return ofAttempts("WithClientCancel", func(s *settings) error {
		s.clientCancel = on
		return nil
	})
}

// WithoutAnswer stores no answer of an idempotent request: off if not set. What would store one, also
// EndCommit and Attempt.Commit, does what EndDone does: the request is done, and later requests with its key get
// ErrUnreplayable. Resolve refuses Answered, on a Locker with the option. Take it for answers that show a secret once. Middlewares that only lock refuse the
// option.
func WithoutAnswer() Option {
	return ofAttempts("WithoutAnswer", func(s *settings) error {
		s.withoutAnswer = true
		return nil
	})
}

// ofAttempts returns an option that has an effect on idempotent requests only.
func ofAttempts(name string, set option) Option {
	return scopedOption{option: set, name: name, on: bridge.Idempotents}
}
