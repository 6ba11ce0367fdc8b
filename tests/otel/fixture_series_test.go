package oteltest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/otellock"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	suite.Main(m)
}

// newLocker returns a Locker that is closed at the end of the test. Its command timeout is longer
// than the default, because commands are slow while other tests load the machine.
func newLocker(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	locks, err := core.New(rdb, append([]core.Option{core.WithCommandTimeout(2 * time.Second)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Close does not wait for leases that a failed test still holds.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = locks.Close(ctx)
	})
	return locks
}

// An observed is a Locker on a real Redis, whose metrics and spans are kept in memory.
type observed struct {
	locks       *core.Locker
	other       *core.Locker // of another process, which is not observed
	rdb         redis.UniversalClient
	prefix      string
	instruments *otellock.Instrumentation
	tracers     *sdktrace.TracerProvider // samples what the client samples
	spans       *tracetest.InMemoryExporter
	reader      *metric.ManualReader
}

// newObserved returns a Locker on the server that the tests share.
func newObserved(t *testing.T, opts ...core.Option) *observed {
	t.Helper()
	return newObservedOn(t, redistest.Shared(t, redistest.OnServer).Client(t), redistest.OwnPrefix(), opts...)
}

// newObservedOn returns a Locker on the server of a client.
func newObservedOn(t *testing.T, rdb redis.UniversalClient, prefix string, opts ...core.Option) *observed {
	t.Helper()
	o := &observed{
		rdb:    rdb,
		prefix: prefix,
		spans:  tracetest.NewInMemoryExporter(),
		reader: metric.NewManualReader(),
	}
	o.tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(o.spans), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
	meters := metric.NewMeterProvider(metric.WithReader(o.reader))
	t.Cleanup(func() {
		_ = o.tracers.Shutdown(context.Background())
		_ = meters.Shutdown(context.Background())
	})
	var err error
	o.instruments, err = otellock.New(otellock.WithMeterProvider(meters), otellock.WithTracerProvider(o.tracers))
	if err != nil {
		t.Fatal(err)
	}
	o.other = newLocker(t, o.rdb, core.WithPrefix(o.prefix))
	o.locks = newLocker(t, o.rdb, append([]core.Option{core.WithPrefix(o.prefix), core.WithObserver(o.instruments.Observe)}, opts...)...)
	return o
}

// series returns the value of each series: its instrument with its attributes. That of a histogram
// is its count.
func (o *observed) series(t *testing.T) map[string]int64 {
	t.Helper()
	var gathered metricdata.ResourceMetrics
	if err := o.reader.Collect(context.Background(), &gathered); err != nil {
		t.Fatal(err)
	}
	values := map[string]int64{}
	for _, scope := range gathered.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					values[seriesName(m.Name, point.Attributes)] += point.Value
				}
			case metricdata.Histogram[float64]:
				for _, point := range data.DataPoints {
					values[seriesName(m.Name, point.Attributes)] += int64(point.Count)
				}
			default:
				t.Fatalf("%s has data of type %T", m.Name, m.Data)
			}
		}
	}
	return values
}

// seriesName returns the name of a series, such as "reqlock.lease.active{reqlock.operation=lock}".
func seriesName(instrument string, set attribute.Set) string {
	return instrument + "{" + set.Encoded(attribute.DefaultEncoder()) + "}"
}

// sum returns the sum of the series whose names begin with the prefix and contain the part.
func sum(series map[string]int64, prefix, part string) int64 {
	var total int64
	for name, value := range series {
		if strings.HasPrefix(name, prefix+"{") && strings.Contains(name, part) {
			total += value
		}
	}
	return total
}

// awaitWaiting returns once so many requests wait.
func (o *observed) awaitWaiting(t *testing.T, n int64) {
	t.Helper()
	suite.Eventually(t, "the requests wait", func() bool { return sum(o.series(t), "reqlock.request.waiting", "") == n })
}
