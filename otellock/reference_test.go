package otellock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/otellock"
)

// The span of each copy has a link to the span of the first request, also if the copy gets its answer at once.
func TestCopiesHaveALinkToTheFirstRequest(t *testing.T) {
	t.Parallel()
	provider, recorder := newTracer(t)
	instruments, _ := newInstruments(t, otellock.WithTracerProvider(provider))
	locks := locktest.New(t, core.WithObserver(instruments.Observe), core.WithReference(otellock.Reference))
	ctx, first := provider.Tracer("test").Start(t.Context(), "first")
	attempt, err := locks.Begin(ctx, "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := func() error {
		ctx, request := provider.Tracer("test").Start(t.Context(), "copy")
		defer request.End()
		_, err := locks.Begin(ctx, "k", nil)
		return err
	}
	if err := begin(); !errors.Is(err, core.ErrBusy) {
		t.Errorf("begin: %v", err)
	}
	if err := attempt.Commit(ctx, []byte("answer")); err != nil {
		t.Error(err)
	}
	if err := begin(); err != nil {
		t.Errorf("begin: %v", err)
	}
	first.End()
	var got []string
	for _, span := range recorder.Ended() {
		if !strings.HasPrefix(span.Name(), "reqlock.") {
			continue
		}
		text := textOf(span)
		for _, link := range span.Links() {
			if link.SpanContext.TraceID() != first.SpanContext().TraceID() || link.SpanContext.SpanID() != first.SpanContext().SpanID() {
				t.Errorf("%s: a link to %v", text, link.SpanContext)
			}
		}
		if valueOf(span, otellock.FirstKey) != "" || span.SpanContext().TraceID() == first.SpanContext().TraceID() {
			t.Errorf("%s: it has an attribute, or is of the first request", text)
		}
		got = append(got, fmt.Sprint(valueOf(span, otellock.OutcomeKey), " ", len(span.Links())))
	}
	if want := "[busy 1 replayed 1]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// A reference that is no traceparent is an attribute. Without one there is neither, and no span for a replay.
func TestOtherReferenceIsAnAttribute(t *testing.T) {
	t.Parallel()
	for _, reference := range []string{
		"", "request 7", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
	} {
		provider, recorder := newTracer(t)
		instruments, _ := newInstruments(t, otellock.WithTracerProvider(provider))
		ctx, request := provider.Tracer("test").Start(t.Context(), "copy")
		locks := locktest.New(t, core.WithObserver(func(e core.Event) {
			if e.Kind == core.Replayed {
				e.First = reference
				instruments.Observe(e)
			}
		}))
		for range 2 {
			attempt, err := locks.Begin(ctx, "k", nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = attempt.Commit(ctx, nil)
		}
		spans := recorder.Ended()
		request.End()
		switch {
		case reference == "" && len(spans) > 0, reference != "" && len(spans) != 1:
			t.Errorf("%q: %d spans", reference, len(spans))
		case reference != "" && (valueOf(spans[0], otellock.FirstKey) != reference || len(spans[0].Links()) > 0):
			t.Errorf("%q: %s with %d links", reference, textOf(spans[0]), len(spans[0].Links()))
		}
	}
}

// valueOf returns an attribute of a span, or "".
func valueOf(span sdktrace.ReadOnlySpan, key attribute.Key) string {
	for _, pair := range span.Attributes() {
		if pair.Key == key {
			return pair.Value.String()
		}
	}
	return ""
}

func TestReferenceIsATraceparent(t *testing.T) {
	t.Parallel()
	if got := otellock.Reference(t.Context()); got != "" {
		t.Errorf("without a span: %q", got)
	}
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	if got := otellock.Reference(trace.ContextWithSpanContext(t.Context(), span)); got != "00-01000000000000000000000000000000-0200000000000000-01" {
		t.Errorf("%q", got)
	}
}
