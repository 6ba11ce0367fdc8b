package otellock_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/otellock"
)

// A program gives its provider once, by otel.SetMeterProvider or by WithMeterProvider. This example
// reads the metrics itself, instead of exporting them.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	reader := metric.NewManualReader()

	instruments, err := otellock.New(otellock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	if err != nil {
		panic(err)
	}
	locks := core.Must(core.New(rdb, core.WithObserver(instruments.Observe)))
	accounts := locks.With(core.WithName("account"))
	_ = accounts.Do(context.Background(), "account:42", func(context.Context) error { return nil })
	_ = locks.Close(context.Background())

	var gathered metricdata.ResourceMetrics
	_ = reader.Collect(context.Background(), &gathered)
	for _, m := range gathered.ScopeMetrics[0].Metrics {
		if histogram, ok := m.Data.(metricdata.Histogram[float64]); ok {
			point := histogram.DataPoints[0]
			name, _ := point.Attributes.Value(otellock.LockNameKey)
			fmt.Println(m.Name, m.Unit, name.AsString(), point.Count)
		}
	}
	// Output:
	// reqlock.acquire.duration s account 1
	// reqlock.hold.duration s account 1
}
