package otellock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/reqlock/reqlock/core"
)

// watched are the Lockers of Watch.
type watched struct {
	mu      sync.Mutex
	lockers []*core.Locker
}

// Watch adds what the events of a Locker do not show, and what it counts when the metrics are
// collected: how many idempotent requests run although their client has gone (core's
// Locker.AttemptsWithoutClient), how many commits go on, and the age of the oldest one
// (Locker.OpenCommits). The views of a Locker count with it, so call Watch once for each Locker that
// New or NewQuorum of core has made. Several Lockers add up. Watch keeps the Locker in memory. It
// fails if the Locker is nil, or if the provider of the metrics refuses the callback.
func (i *Instrumentation) Watch(locks *core.Locker) error {
	if locks == nil {
		return errors.New("reqlock: otellock.Watch: the Locker is nil")
	}
	i.watched.mu.Lock()
	defer i.watched.mu.Unlock()
	if len(i.watched.lockers) == 0 {
		if err := i.observeWatched(); err != nil {
			return fmt.Errorf("reqlock: otellock.Watch: the callback cannot be registered: %w", err)
		}
	}
	i.watched.lockers = append(i.watched.lockers, locks)
	return nil
}

// observeWatched registers the callback.
func (i *Instrumentation) observeWatched() error {
	made, of := i.instruments, metric.WithAttributeSet(attribute.NewSet(operationOf(true)))
	_, err := i.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		withoutClient, open := i.watched.count() //nolint:contextcheck // it asks contexts of requests
		o.ObserveInt64(made.attemptWithoutClient, int64(withoutClient), of)
		o.ObserveInt64(made.commitOpen, int64(open.Count))
		o.ObserveFloat64(made.commitAge, open.Oldest.Round(time.Millisecond).Seconds())
		return nil
	}, made.attemptWithoutClient, made.commitOpen, made.commitAge)
	return err
}

// count returns the numbers of all Lockers together.
func (w *watched) count() (withoutClient int, open core.OpenCommits) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, locks := range w.lockers {
		withoutClient += locks.AttemptsWithoutClient()
		each := locks.OpenCommits()
		open.Count += each.Count
		open.Oldest = max(open.Oldest, each.Oldest)
	}
	return withoutClient, open
}
