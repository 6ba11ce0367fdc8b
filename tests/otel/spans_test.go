// Package oteltest tests otellock and the adapters together with what services use beside them: the
// instrumentation of each framework and of go-redis for OpenTelemetry, and a Prometheus with the alerts
// and the dashboard of otellock. It is a module of its own, so that reqlock needs none of these. README.md
// says what is proved.
//
// The package has only tests.
package oteltest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/reqlock/reqlock/otellock"
)

// Under each instrumentation, the span of a wait or of a refusal is a child of the server's span,
// and so are the spans of the handler. A trace that is not sampled has no span.
func TestSpansNestUnderThoseOfServers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		held    bool          // by another process, when the request arrives
		wait    time.Duration // of the route
		free    bool          // the other process releases once the request waits
		sampled bool
		ran     ran
		want    string // the spans below that of the client
	}{
		"free":                 {sampled: true, ran: true, want: "server(work)"},
		"waits":                {held: true, wait: time.Minute, free: true, sampled: true, ran: true, want: "server(reqlock.acquire:acquired work)"},
		"refused":              {held: true, sampled: true, want: "server(reqlock.acquire:busy)"},
		"refused after a wait": {held: true, wait: time.Second, sampled: true, want: "server(reqlock.acquire:wait_timeout)"},
		"waits, not sampled":   {held: true, wait: time.Minute, free: true, ran: true},
		"refused, not sampled": {held: true},
	} {
		for framework, start := range frameworks() {
			t.Run(framework+", "+name, func(t *testing.T) {
				t.Parallel()
				o := newObserved(t)
				served := start(t, o, test.wait, func(ctx context.Context) {
					_, span := o.tracers.Tracer("test").Start(ctx, "work")
					span.End()
				})
				release := func() {}
				if test.held {
					lease, err := o.other.Lock(t.Context(), "account:42")
					if err != nil {
						t.Fatal(err)
					}
					release = func() { _ = lease.Release(context.Background()) }
				}
				client, parent := newClientSpan(test.sampled)
				answered := make(chan struct{})
				go func() {
					defer close(answered)
					if ran, err := served.call(t.Context(), parent); ran != test.ran || err != nil {
						t.Errorf("ran: %t, error: %v", ran, err)
					}
				}()
				if test.free {
					o.awaitWaiting(t, 1)
					release()
				}
				<-answered
				served.stop()
				release()
				spans := o.spans.GetSpans()
				if got := treeOf(t, spans, client.SpanID()); got != test.want {
					t.Errorf("got %q, want %q of %d spans", got, test.want, len(spans))
				}
				for _, span := range spans {
					if span.SpanContext.TraceID() != client.TraceID() {
						t.Errorf("%s is in another trace", span.Name)
					}
				}
			})
		}
	}
}

// treeOf returns the spans below a parent as text, in the order in which they begin, each with those
// below it. A span must not leave the time of its parent, and spans side by side must not overlap.
func treeOf(t *testing.T, spans tracetest.SpanStubs, parent trace.SpanID) string {
	t.Helper()
	var children tracetest.SpanStubs
	for _, span := range spans {
		if span.Parent.SpanID() == parent {
			children = append(children, span)
		}
	}
	slices.SortFunc(children, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var texts []string
	for i, child := range children {
		for _, span := range spans {
			if span.SpanContext.SpanID() == parent && (child.StartTime.Before(span.StartTime) || child.EndTime.After(span.EndTime)) {
				t.Errorf("%s leaves the time of %s", child.Name, span.Name)
			}
		}
		if i > 0 && child.StartTime.Before(children[i-1].EndTime) {
			t.Errorf("%s overlaps %s", child.Name, children[i-1].Name)
		}
		text := textOf(child)
		if below := treeOf(t, spans, child.SpanContext.SpanID()); below != "" {
			text += "(" + below + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

// textOf returns the name of a span: "server" of each instrumentation, and the outcome of a lock.
func textOf(span tracetest.SpanStub) string {
	if span.SpanKind == trace.SpanKindServer {
		return "server"
	}
	for _, pair := range span.Attributes {
		if pair.Key == otellock.OutcomeKey {
			return span.Name + ":" + pair.Value.String()
		}
	}
	return span.Name
}
