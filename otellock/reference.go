package otellock

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/reqlock/reqlock/core"
)

// traceparent is the name of the header of W3C Trace Context.
const traceparent = "traceparent"

// Reference returns the span of the context as a traceparent of W3C Trace Context, of 55 characters, or ""
// if there is none. It is for core.WithReference: the spans of copies get a link to the span of the first
// request.
func Reference(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceparent]
}

// firstOf returns the link to the span of the first request, if the reference of the event is a traceparent,
// or else the reference as an attribute.
func firstOf(e core.Event) (links []trace.Link, about []attribute.KeyValue) {
	if e.First == "" {
		return nil, nil
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: e.First})
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		return []trace.Link{{SpanContext: span}}, nil
	}
	return nil, []attribute.KeyValue{FirstKey.String(e.First)}
}
