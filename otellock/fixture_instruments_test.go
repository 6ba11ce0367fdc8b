package otellock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/otellock"
)

func TestMain(m *testing.M) { suite.Main(m) }

// newInstruments returns an Instrumentation and the reader of its metrics.
func newInstruments(tb testing.TB, opts ...otellock.Option) (*otellock.Instrumentation, *metric.ManualReader) {
	tb.Helper()
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	tb.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	made, err := otellock.New(append([]otellock.Option{otellock.WithMeterProvider(provider)}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	return made, reader
}

// gather returns the metrics of a reader.
func gather(tb testing.TB, reader *metric.ManualReader) []metricdata.Metrics {
	tb.Helper()
	var gathered metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &gathered); err != nil {
		tb.Fatal(err)
	}
	var all []metricdata.Metrics
	for _, scope := range gathered.ScopeMetrics {
		all = append(all, scope.Metrics...)
	}
	return all
}

// A table has the value of each series, which is the count of a histogram. Its key is the name of an
// instrument and the attributes, all without "reqlock.", as normal returns it.
type table map[string]int64

// normal returns the name of an instrument and its sorted attributes.
func normal(series string) string {
	fields := strings.Fields(series)
	slices.Sort(fields[1:])
	return strings.Join(fields, " ")
}

// of returns the value of a series, whose attributes may have any order.
func (v table) of(series string) int64 { return v[normal(series)] }

// valuesOf returns the table of a reader.
func valuesOf(tb testing.TB, reader *metric.ManualReader) table {
	tb.Helper()
	values := table{}
	add := func(m metricdata.Metrics, set attribute.Set, value int64) {
		text := strings.TrimPrefix(m.Name, "reqlock.")
		for _, pair := range set.ToSlice() {
			text += " " + strings.TrimPrefix(string(pair.Key), "reqlock.") + "=" + pair.Value.String()
		}
		values[normal(text)] += value
	}
	for _, m := range gather(tb, reader) {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, point := range data.DataPoints {
				add(m, point.Attributes, point.Value)
			}
		case metricdata.Histogram[float64]:
			for _, point := range data.DataPoints {
				add(m, point.Attributes, int64(point.Count))
			}
		case metricdata.Gauge[int64]:
			for _, point := range data.DataPoints {
				add(m, point.Attributes, point.Value)
			}
		case metricdata.Gauge[float64]: // in ms
			for _, point := range data.DataPoints {
				add(m, point.Attributes, int64(1000*point.Value))
			}
		default:
			tb.Fatalf("%s has data of type %T", m.Name, m.Data)
		}
	}
	return values
}

// some is the wanted value of a series that may have any value above zero.
const some = -1

// differences returns what the values have instead of the wanted ones, with "" for none. A 0 and
// outages count only if they are wanted: a test may have an outage by the way.
func (v table) differences(want table) string {
	var all []string
	wanted := map[string]struct{}{}
	for series := range want {
		wanted[normal(series)] = struct{}{}
	}
	for series, value := range v {
		if _, ok := wanted[series]; !ok && value != 0 && !strings.HasPrefix(series, "outage.") {
			all = append(all, fmt.Sprintf("%s: got %d, want none", series, value))
		}
	}
	for series, value := range want {
		got, ok := v[normal(series)]
		if !ok || got != value && (value != some || got <= 0) {
			all = append(all, fmt.Sprintf("%s: got %d (%t), want %d", series, got, ok, value))
		}
	}
	return strings.Join(all, "\n")
}

// await fails the test unless the values become the wanted ones: some events come after the call
// that caused them.
func await(tb testing.TB, reader *metric.ManualReader, want table) {
	tb.Helper()
	var differences string
	defer func() {
		if differences != "" {
			tb.Log(differences)
		}
	}()
	suite.Eventually(tb, "the metrics are the wanted ones", func() bool {
		differences = valuesOf(tb, reader).differences(want)
		return differences == ""
	})
}

// newLocker returns a Locker that is closed at the end of the test. Its command timeout is longer
// than the default, because commands are slow while other tests load the machine.
func newLocker(tb testing.TB, rdb redis.UniversalClient, opts ...core.Option) *core.Locker {
	tb.Helper()
	locks, err := core.New(rdb, append([]core.Option{core.WithCommandTimeout(2 * time.Second)}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		// Close does not wait for leases that a failed test still holds.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = locks.Close(ctx)
	})
	return locks
}

// A fixture is a Locker whose metrics are read, and another process beside it.
type fixture struct {
	testing.TB

	rdb    redis.UniversalClient
	proxy  *redistest.Proxy // between locks and Redis
	prefix string
	reader *metric.ManualReader
	locks  *core.Locker
	other  *core.Locker
}

// newFixture returns a fixture on the server that the tests share. The locks have the name
// "account".
func newFixture(tb testing.TB, opts ...core.Option) *fixture {
	tb.Helper()
	servers := redistest.Shared(tb, redistest.OnServer)
	f := &fixture{TB: tb, rdb: servers.Client(tb), proxy: servers.Proxy(tb), prefix: redistest.OwnPrefix()}
	instruments, reader := newInstruments(tb)
	f.reader = reader
	f.other = newLocker(tb, f.rdb, core.WithPrefix(f.prefix))
	client := servers.Client(tb, redistest.Through(f.proxy))
	if err := client.Ping(context.Background()).Err(); err != nil { // the first command of a test needs no time to connect
		tb.Fatal(err)
	}
	f.locks = newLocker(tb, client, append([]core.Option{
		core.WithPrefix(f.prefix), core.WithObserver(instruments.Observe), core.WithName("account"),
	}, opts...)...)
	return f
}

// lock takes a lock.
func (f *fixture) lock(locks *core.Locker, key string) *core.Lease {
	f.Helper()
	lease, err := locks.Lock(context.Background(), key)
	if err != nil {
		f.Fatalf("lock %q: %v", key, err)
	}
	return lease
}

// release releases a lease.
func (f *fixture) release(lease *core.Lease) {
	f.Helper()
	if err := lease.Release(context.Background()); err != nil {
		f.Errorf("release: %v", err)
	}
}

// begin begins an attempt.
func (f *fixture) begin(locks *core.Locker, key string) *core.Attempt {
	f.Helper()
	a, err := locks.Begin(context.Background(), key, []byte("payload"))
	if err != nil {
		f.Fatalf("begin %q: %v", key, err)
	}
	return a
}

// awaitValue returns when a series has a value.
func (f *fixture) awaitValue(series string, value int64) {
	f.Helper()
	suite.Eventually(f, fmt.Sprintf("%s is %d", series, value), func() bool { return valuesOf(f, f.reader).of(series) == value })
}
