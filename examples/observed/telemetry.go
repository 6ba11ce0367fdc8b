package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/reqlock/reqlock/otellock"
)

// telemetry is what a program needs to show its metrics and traces.
type telemetry struct {
	meters     *metric.MeterProvider
	tracers    *sdktrace.TracerProvider
	propagator propagation.TextMapPropagator // of the trace, from clients to the service
	metrics    http.Handler                  // answers Prometheus
	locks      *otellock.Instrumentation
}

// newTelemetry returns the telemetry of a program that prints its traces. A program in
// production sends them to a collector instead: it gives sdktrace.WithBatcher an exporter of
// OTLP. Programs often make the providers the global ones (otel.SetMeterProvider). Then
// otellock.New and otelgin need no options.
func newTelemetry(out io.Writer) (*telemetry, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, err
	}
	t := &telemetry{
		meters:     metric.NewMeterProvider(metric.WithReader(exporter)),
		tracers:    sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(newPrinter(out))),
		propagator: propagation.TraceContext{},
		metrics:    promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
	}
	t.locks, err = otellock.New(otellock.WithMeterProvider(t.meters), otellock.WithTracerProvider(t.tracers))
	return t, err
}

// tracer returns the tracer of the program's own spans.
func (t *telemetry) tracer() trace.Tracer { return t.tracers.Tracer("examples/observed") }

// close ends the providers.
func (t *telemetry) close(ctx context.Context) error {
	return errors.Join(t.tracers.Shutdown(ctx), t.meters.Shutdown(ctx))
}
