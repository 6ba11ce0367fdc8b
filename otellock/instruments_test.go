package otellock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/otellock"
)

// everyEvent returns events that use each instrument, of a lease that was held for a second after a
// wait of 20 ms.
func everyEvent() []core.Event {
	const waited, held = 20 * time.Millisecond, time.Second
	return []core.Event{
		{Kind: core.Waiting},
		{Kind: core.Acquired, Grant: core.GrantPassed, Queued: true, Waited: waited},
		{Kind: core.Renewed, Held: held},
		{Kind: core.HeldLong, Held: held},
		{Kind: core.Lost, Held: held, Err: core.ErrLost},
		{Kind: core.Released, Held: held, Err: core.ErrLost},
		{Kind: core.Committed, Ending: core.EndCommit, Idempotent: true},
		{Kind: core.Restored, Idempotent: true},
		{Kind: core.OutcomeUnknown, Idempotent: true},
		{Kind: core.Unlocked},
		{Kind: core.Registered},
		{Kind: core.Searched, Open: 2, Took: time.Second},
		{Kind: core.OperatorRevoked, Change: &core.Change{By: "ada"}},
	}
}

func TestInstrumentsHaveTheirUnitsAndBuckets(t *testing.T) {
	t.Parallel()
	instruments, reader := newInstruments(t)
	for _, event := range everyEvent() {
		instruments.Observe(event)
	}
	if err := instruments.Watch(locktest.New(t).Locker); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range gather(t, reader) {
		if m.Description == "" {
			t.Errorf("%s has no description", m.Name)
		}
		about := ""
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			about = fmt.Sprintf("monotonic=%t", data.IsMonotonic)
		case metricdata.Histogram[float64]:
			about = fmt.Sprint("sum=", data.DataPoints[0].Sum, " bounds=", data.DataPoints[0].Bounds)
		}
		got = append(got, fmt.Sprint(m.Name, " ", m.Unit, " ", about))
	}
	slices.Sort(got)
	want := []string{
		"reqlock.acquire.duration s sum=0.02 bounds=[0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10]",
		"reqlock.attempt.endings {attempt} monotonic=true",
		"reqlock.attempt.restorations {attempt} monotonic=true",
		"reqlock.attempt.unknown {report} monotonic=true",
		"reqlock.attempt.without_client {attempt} monotonic=false",
		"reqlock.commit.age s ",
		"reqlock.commit.open {commit} ",
		"reqlock.hold.duration s sum=1 bounds=[0.005 0.01 0.05 0.1 0.5 1 5 10 30 60 300]",
		"reqlock.lease.active {lease} monotonic=false",
		"reqlock.lease.grants {lease} monotonic=true",
		"reqlock.lease.losses {lease} monotonic=true",
		"reqlock.lease.overruns {lease} monotonic=true",
		"reqlock.lease.renewals {renewal} monotonic=true",
		"reqlock.operator.changes {change} monotonic=true",
		"reqlock.outage.active {server} monotonic=false",
		"reqlock.outage.starts {outage} monotonic=true",
		"reqlock.outcome.open {outcome} ",
		"reqlock.request.unlocked {request} monotonic=true",
		"reqlock.request.waiting {request} monotonic=false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for want, option := range map[string]otellock.Option{
		"WithMeterProvider":  otellock.WithMeterProvider(nil),
		"WithTracerProvider": otellock.WithTracerProvider(nil),
		"WithSpans: 3":       otellock.WithSpans(otellock.None + 1),
		"WithSpans: -1":      otellock.WithSpans(otellock.Contended - 1),
	} {
		if _, err := otellock.New(option); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "reqlock: otellock.") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// errRefused is the error of the meter of a test.
var errRefused = errors.New("the meter refuses")

// A refusing provider has a meter that makes no counter.
type refusing struct{ noop.MeterProvider }

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

type refusingMeter struct{ noop.Meter }

func (refusingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return noop.Int64Counter{}, errRefused
}

func TestNewReportsAnInstrumentThatCannotBeMade(t *testing.T) {
	t.Parallel()
	if _, err := otellock.New(otellock.WithMeterProvider(refusing{})); !errors.Is(err, errRefused) {
		t.Errorf("got %v", err)
	}
}

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
