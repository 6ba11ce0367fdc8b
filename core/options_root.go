package core

import (
	"errors"
	"fmt"
	"time"
)

// WithPrefix sets the prefix of each key in Redis: "reqlock:" if not set. It may be empty. It
// may contain a complete hash tag such as "{app}:", which puts all locks in one cluster
// slot. reqlock and other clients exclude each other only if they use the same names. Only
// New and NewQuorum accept this option.
func WithPrefix(prefix string) Option {
	return rootOption{"WithPrefix", func(r *root) error {
		r.prefix = prefix
		return nil
	}}
}

// WithCommandTimeout limits the time of each command to Redis, including one resend: 500 ms
// if not set, at least 1 ms, at most ten years. The limit of a command is never more than a
// quarter of the TTL. Only New and NewQuorum accept this option.
func WithCommandTimeout(d time.Duration) Option {
	return rootOption{"WithCommandTimeout", func(r *root) error {
		r.commandTimeout = d
		return within("WithCommandTimeout", d, minCommandTimeout, maxTTL)
	}}
}

// WithMaxWaiters limits how many callers of this process wait for one key: 1024 if not set,
// at least 1. A caller above the limit gets ErrQueueFull at once. Only New and NewQuorum
// accept this option.
func WithMaxWaiters(n int) Option {
	return rootOption{"WithMaxWaiters", func(r *root) error {
		if n < 1 {
			return fmt.Errorf("reqlock: WithMaxWaiters: %d is below 1", n)
		}
		r.maxWaiters = n
		return nil
	}}
}

// WithMaxTotalWaiters limits how many callers of this process wait for all keys together:
// 65536 if not set, at least 1. A caller above the limit gets ErrOverloaded at once. Only New
// and NewQuorum accept this option.
func WithMaxTotalWaiters(n int) Option {
	return rootOption{"WithMaxTotalWaiters", func(r *root) error {
		if n < 1 {
			return fmt.Errorf("reqlock: WithMaxTotalWaiters: %d is below 1", n)
		}
		r.maxTotal = n
		return nil
	}}
}

// WithObserver adds a function that receives each event. It may be called on the goroutine
// that takes a lock, and by several goroutines at once. So it must be fast, must not block,
// and must be safe for concurrent use. Only New and NewQuorum accept this option.
func WithObserver(observe func(Event)) Option {
	return rootOption{"WithObserver", func(r *root) error {
		if observe == nil {
			return errors.New("reqlock: WithObserver: the function is nil")
		}
		r.observers = append(r.observers[:len(r.observers):len(r.observers)], observe)
		return nil
	}}
}
