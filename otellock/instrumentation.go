package otellock

import (
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/reqlock/reqlock/core"
)

// scope is the name of the instrumentation scope, of metrics and of spans.
const scope = "github.com/reqlock/reqlock/otellock"

// An Instrumentation turns events into metrics and spans. Several Lockers may share one. It is
// safe for concurrent use.
type Instrumentation struct {
	meter       metric.Meter
	instruments instruments
	series      seriesTable
	watched     watched
	tracer      trace.Tracer
	spans       Spans
	holdSpans   bool
}

// New returns an Instrumentation. It fails if an option is invalid, or if the provider of the
// metrics refuses an instrument.
func New(opts ...Option) (*Instrumentation, error) {
	c := config{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider()}
	for _, opt := range opts {
		if err := opt.apply(&c); err != nil {
			return nil, err
		}
	}
	meter := c.meters.Meter(scope)
	made, err := newInstruments(meter)
	if err != nil {
		return nil, fmt.Errorf("reqlock: otellock.New: an instrument cannot be made: %w", err)
	}
	return &Instrumentation{meter: meter, instruments: made, tracer: c.tracers.Tracer(scope), spans: c.spans, holdSpans: c.holdSpans}, nil
}

// Observe records an event. Give it to core.WithObserver. It does not block and, without a
// span, does not allocate once the attributes of the event have been seen.
func (i *Instrumentation) Observe(e core.Event) {
	switch e.Kind {
	case core.Warned, core.Closing: // they are about the setup, and about the end of the program
		return
	case core.Outage, core.Recovered: // they are about a server, and not about a lock
		i.recordOutage(e)
		return
	default:
	}
	i.record(e)
	switch e.Kind {
	case core.Acquired, core.Refused, core.Replayed:
		i.traceAcquire(e)
	case core.Released:
		i.traceHold(e)
	default:
	}
}
