package core

import (
	"errors"
	"fmt"
	"time"
)

// WithPrefix sets what stands before each key in Redis: "reqlock:" if not set.
// It may be empty, and may hold a whole hash tag such as "{app}:", which puts
// all locks in one cluster slot. Clients of other kinds that are to be
// excluded must use the same names. Only New and NewQuorum take it.
func WithPrefix(prefix string) Option {
	return rootOption{"WithPrefix", func(r *root) error {
		r.prefix = prefix
		return nil
	}}
}

// WithCommandTimeout bounds each command to Redis, its one re-send included:
// 500 ms if not set, at least 1 ms, at most ten years. A command never gets more
// than a quarter of the TTL. Only New and NewQuorum take it.
func WithCommandTimeout(d time.Duration) Option {
	return rootOption{"WithCommandTimeout", func(r *root) error {
		r.commandTimeout = d
		return within("WithCommandTimeout", d, minCommandTimeout, maxTTL)
	}}
}

// WithMaxWaiters bounds how many callers of this process wait for one key: 1024
// if not set, at least 1. Who comes after them gets ErrQueueFull at once. Only
// New and NewQuorum take it.
func WithMaxWaiters(n int) Option {
	return rootOption{"WithMaxWaiters", func(r *root) error {
		if n < 1 {
			return fmt.Errorf("reqlock: WithMaxWaiters: %d is below 1", n)
		}
		r.maxWaiters = n
		return nil
	}}
}

// WithMaxTotalWaiters bounds how many callers of this process wait for all
// keys together: 65536 if not set, at least 1. Who comes after them gets
// ErrOverloaded at once. Only New and NewQuorum take it.
func WithMaxTotalWaiters(n int) Option {
	return rootOption{"WithMaxTotalWaiters", func(r *root) error {
		if n < 1 {
			return fmt.Errorf("reqlock: WithMaxTotalWaiters: %d is below 1", n)
		}
		r.maxTotal = n
		return nil
	}}
}

// WithObserver adds a function that is told each event. Some are told by the
// goroutine that asks for a lock, and several at a time, so it must be quick,
// must not block, and must be safe for concurrent use. Only New and NewQuorum take it.
func WithObserver(observe func(Event)) Option {
	return rootOption{"WithObserver", func(r *root) error {
		if observe == nil {
			return errors.New("reqlock: WithObserver: the function is nil")
		}
		r.observers = append(r.observers[:len(r.observers):len(r.observers)], observe)
		return nil
	}}
}
