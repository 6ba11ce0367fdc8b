package otellock

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/reqlock/reqlock/core"
)

// The names of the spans.
const (
	acquireSpan = "reqlock.acquire"
	holdSpan    = "reqlock.hold"
)

// traceAcquire makes the span of a request for a lock that has ended.
func (i *Instrumentation) traceAcquire(e core.Event) {
	if i.spans == None || i.spans == Contended && !e.Queued && e.Kind != core.Refused && e.First == "" {
		return
	}
	ctx := e.Context()
	if !isTraced(ctx) {
		return
	}
	code, failure := outcomeOf(e)
	about := append(attributesOf(e), OutcomeKey.String(code))
	if e.Kind == core.Acquired {
		about = append(about, GrantKey.String(e.Grant.String()))
	}
	links, first := firstOf(e)
	i.trace(ctx, acquireSpan, e.Waited, failure, append(about, first...), links...)
}

// traceHold makes the span of a lease that was released.
func (i *Instrumentation) traceHold(e core.Event) {
	if !i.holdSpans {
		return
	}
	ctx := e.Context()
	if !isTraced(ctx) {
		return
	}
	cause := causeOf(e.Err)
	about := append(attributesOf(e), LostKey.Bool(cause != ""))
	if e.Ending != 0 {
		about = append(about, EndingKey.String(e.Ending.String()))
	}
	failure := failureOf(e.Err)
	if cause != "" {
		about, failure = append(about, CauseKey.String(cause)), cause
	}
	i.trace(ctx, holdSpan, e.Held, failure, about)
}

// isTraced reports whether a span under the context belongs to a trace that is recorded. The
// span in the context may have ended: a lease can outlive its request.
func isTraced(ctx context.Context) bool {
	span := trace.SpanFromContext(ctx)
	return span.IsRecording() || span.SpanContext().IsSampled()
}

// attributesOf returns the attributes that both kinds of span have.
func attributesOf(e core.Event) []attribute.KeyValue {
	about := commonOf(keyOf(e))
	if !e.Key.IsEmpty() {
		about = append(about, KeyDigestKey.String(e.Key.String()))
	}
	if e.Process != "" {
		about = append(about, ProcessKey.String(e.Process))
	}
	return about
}

// trace makes a span that lasted until now. No hook is needed at its beginning, because nothing
// runs in it.
func (i *Instrumentation) trace(
	ctx context.Context, name string, lasted time.Duration, failure string, about []attribute.KeyValue, links ...trace.Link,
) {
	now := time.Now()
	if failure != "" {
		about = append(about, ErrorTypeKey.String(failure))
	}
	opts := []trace.SpanStartOption{
		trace.WithTimestamp(now.Add(-lasted)), trace.WithSpanKind(trace.SpanKindInternal),
		trace.WithAttributes(about...), // a sampler sees the attributes of Start only
	}
	if len(links) > 0 {
		opts = append(opts, trace.WithLinks(links...))
	}
	_, span := i.tracer.Start(ctx, name, opts...)
	if failure != "" {
		span.SetStatus(codes.Error, "") // without the text of the error, which may be the program's own
	}
	span.End(trace.WithTimestamp(now))
}
