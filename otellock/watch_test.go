package otellock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/otellock"
)

// The gauge has the requests of all watched Lockers that run without their client.
func TestWatchCountsRequestsWithoutClient(t *testing.T) {
	t.Parallel()
	instruments, reader := newInstruments(t)
	const series = "attempt.without_client operation=attempt"
	want := func(n int64) {
		t.Helper()
		values := valuesOf(t, reader)
		if got, known := values[series]; got != n || !known {
			t.Errorf("%v, want %d of %s", values, n, series)
		}
	}
	var attempts []*core.Attempt
	var leave []context.CancelFunc
	for range 2 {
		locks := locktest.New(t).Locker
		if err := instruments.Watch(locks); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		attempt, err := locks.With(core.WithName("payment")).Begin(ctx, "key", nil)
		if err != nil {
			t.Fatal(err)
		}
		attempts, leave = append(attempts, attempt), append(leave, cancel)
	}
	want(0)
	for _, cancel := range leave {
		cancel()
	}
	want(2)
	for i, attempt := range attempts {
		if err := attempt.Abort(t.Context()); err != nil {
			t.Error(err)
		}
		want(int64(len(attempts) - 1 - i))
	}
}

// A mute provider has a meter that accepts no callback.
type mute struct{ noop.MeterProvider }

func (mute) Meter(string, ...metric.MeterOption) metric.Meter { return muteMeter{} }

type muteMeter struct{ noop.Meter }

func (muteMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errRefused
}

func TestWatchReportsWhatIsWrong(t *testing.T) {
	t.Parallel()
	instruments, err := otellock.New(otellock.WithMeterProvider(mute{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := instruments.Watch(locktest.New(t).Locker); !errors.Is(err, errRefused) {
		t.Errorf("got %v", err)
	}
	if err := instruments.Watch(nil); err == nil || !strings.HasPrefix(err.Error(), "reqlock: otellock.Watch: ") {
		t.Errorf("nil: %v", err)
	}
}
