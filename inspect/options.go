package inspect

import (
	"errors"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/core"
)

// An Option changes a setting of an Inspector.
type Option func(*settings) error

// settings are what the options set.
type settings struct {
	prefix    string
	limit     int
	pause     time.Duration // 0 is as long as the last command took
	retention time.Duration
	observers []func(core.Event)
}

// The limits of the options.
const (
	defaultLimit     = 10_000
	defaultRetention = 24 * time.Hour // as in core
	maxLimit         = 1_000_000
	maxPause         = time.Minute
)

// WithPrefix is the core.WithPrefix of the service: "reqlock:" if not set.
func WithPrefix(prefix string) Option {
	return func(s *settings) error {
		s.prefix = prefix
		return nil
	}
}

// WithLimit sets how many locks, records or processes one list has at most: 10,000 if not set, at
// least 1, at most 1,000,000. A lock takes about 300 bytes of memory, and a process up to 10 KB.
func WithLimit(n int) Option {
	return func(s *settings) error {
		if n < 1 || n > maxLimit {
			return fmt.Errorf("reqlock: WithLimit: %d is not between 1 and %d", n, maxLimit)
		}
		s.limit = n
		return nil
	}
}

// WithPause sets how long a list pauses after each of its commands, at most a minute. If not set,
// it pauses for as long as the command took, so that it takes at most half of the time of a server.
func WithPause(pause time.Duration) Option {
	return func(s *settings) error {
		if pause <= 0 || pause > maxPause {
			return fmt.Errorf("reqlock: WithPause: %v is not between 1ns and %v", pause, maxPause)
		}
		s.pause = pause
		return nil
	}
}

// WithRetention is the core.WithRetention of the service: 24 h if not set. Resolve keeps a record for
// this time, and the Age of a Record is computed from it.
func WithRetention(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return errors.New("reqlock: WithRetention: the time is not positive")
		}
		s.retention = d
		return nil
	}
}

// WithObserver adds a function that receives an event for each change that Revoke, FreeNow and Resolve make,
// or perhaps make: see core.Change. If not set, each change is a line of slog.Default at INFO, as
// core.SlogObserver logs it. The function runs on the goroutine of the call, which returns after it, so it may
// store the event. Calls at once call it at once. A panic of the function reaches the caller, after the change.
func WithObserver(observe func(core.Event)) Option {
	return func(s *settings) error {
		if observe == nil {
			return errors.New("reqlock: WithObserver: the function is nil")
		}
		s.observers = append(s.observers, observe)
		return nil
	}
}
