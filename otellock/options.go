package otellock

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// An Option is a setting of New. A later option overrides an earlier one.
type Option interface{ apply(*config) error }

// config is what the options of New set.
type config struct {
	meters    metric.MeterProvider
	tracers   trace.TracerProvider
	spans     Spans
	holdSpans bool
}

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

// WithMeterProvider sets the provider of the metrics: the global one of package otel if not set.
func WithMeterProvider(provider metric.MeterProvider) Option {
	return option(func(c *config) error {
		if provider == nil {
			return errors.New("reqlock: otellock.WithMeterProvider: the provider is nil")
		}
		c.meters = provider
		return nil
	})
}

// WithTracerProvider sets the provider of the spans: the global one of package otel if not set.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return option(func(c *config) error {
		if provider == nil {
			return errors.New("reqlock: otellock.WithTracerProvider: the provider is nil")
		}
		c.tracers = provider
		return nil
	})
}

// Spans says which acquisitions get a span.
type Spans int

// The values of WithSpans.
const (
	// Contended is for requests that had to wait, for those that were refused, and for copies of a request
	// whose reference is known: see core.WithReference.
	Contended Spans = iota
	// All is for each request for a lock.
	All
	// None is for no request.
	None
)

// WithSpans sets which acquisitions get a span: Contended if not set.
func WithSpans(spans Spans) Option {
	return option(func(c *config) error {
		if spans < Contended || spans > None {
			return fmt.Errorf("reqlock: otellock.WithSpans: %d is none of Contended, All and None", spans)
		}
		c.spans = spans
		return nil
	})
}

// WithHoldSpans adds a span for each lease, from its grant to its release: no span if not set.
// The span begins and ends beside the spans of the code that runs under the lease, and is not
// their parent. It is exported when the lease is released, so a trace whose holder never
// releases does not have it.
func WithHoldSpans() Option {
	return option(func(c *config) error {
		c.holdSpans = true
		return nil
	})
}
