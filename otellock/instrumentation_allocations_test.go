package otellock_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/otellock"
)

// lone returns the events of a lock that was free.
func lone() [2]core.Event {
	return [...]core.Event{
		{Kind: core.Acquired, Name: "account", Grant: core.GrantFree, Waited: 80 * time.Microsecond},
		{Kind: core.Released, Name: "account", Held: time.Millisecond},
	}
}

func TestObserveDoesNotAllocate(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the allocations of all goroutines
	if suite.Race {
		t.Skip("the race detector allocates")
	}
	for name, events := range map[string][]core.Event{
		"free": {lone()[0], lone()[1]},
		"all":  everyEvent(),
		"attempt": {
			{Kind: core.Acquired, Name: "payment", Grant: core.GrantFree, Idempotent: true},
			{Kind: core.Committed, Name: "payment", Ending: core.EndCommit, Idempotent: true},
			{Kind: core.Released, Name: "payment", Ending: core.EndCommit, Idempotent: true},
		},
	} {
		instruments, _ := newInstruments(t)
		observe := func() {
			for _, event := range events {
				instruments.Observe(event)
			}
		}
		observe() // makes the attributes
		if got := testing.AllocsPerRun(100, observe); got != 0 {
			t.Errorf("%s: %v allocations for %d events", name, got, len(events))
		}
	}
}

// BenchmarkObserve measures the two events of a lock that was free.
func BenchmarkObserve(b *testing.B) {
	instruments, _ := newInstruments(b)
	events := lone()
	b.ReportAllocs()
	for b.Loop() {
		instruments.Observe(events[0])
		instruments.Observe(events[1])
	}
}

// BenchmarkLock measures one lock and its release by one goroutine on a real server, without and
// with metrics.
func BenchmarkLock(b *testing.B) {
	rdb := redistest.Start(b).Client(b)
	provider := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
	instruments, err := otellock.New(otellock.WithMeterProvider(provider))
	if err != nil {
		b.Fatal(err)
	}
	for _, row := range []struct {
		name string
		opts []core.Option
	}{
		{"bare", nil},
		{"observed", []core.Option{core.WithObserver(instruments.Observe)}},
	} {
		b.Run(row.name, func(b *testing.B) {
			locks := core.Must(core.New(rdb, row.opts...))
			defer func() { _ = locks.Close(context.Background()) }()
			b.ReportAllocs()
			for b.Loop() {
				lease, err := locks.Lock(context.Background(), "k")
				if err != nil {
					b.Fatal(err)
				}
				if err := lease.Release(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
