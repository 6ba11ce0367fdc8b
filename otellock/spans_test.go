package otellock_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/otellock"
)

// newTracer returns a provider of spans and the recorder of those that have ended.
func newTracer(tb testing.TB, opts ...sdktrace.TracerProviderOption) (*sdktrace.TracerProvider, *tracetest.SpanRecorder) {
	tb.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(append(opts, sdktrace.WithSpanProcessor(recorder))...)
	tb.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return provider, recorder
}

// textOf returns the name, the attributes and the status of a span, without "reqlock.". The id of a
// process is "id".
func textOf(span sdktrace.ReadOnlySpan) string {
	text := span.Name()
	for _, pair := range span.Attributes() {
		value := pair.Value.String()
		if pair.Key == otellock.ProcessKey && len(value) == 32 {
			value = "id"
		}
		text += " " + string(pair.Key) + "=" + value
	}
	if span.Status().Code == codes.Error {
		text += " " + "Error" + span.Status().Description
	}
	return normal(strings.ReplaceAll(text, "reqlock.", ""))
}

// A request that waited, or that was refused, has a span under that of the request. A lock that is
// free has none, unless the program wants it.
func TestAcquisitionsHaveSpans(t *testing.T) {
	t.Parallel()
	digest := " key.digest=" + digestOf("k")
	spans := map[string][]string{}
	for mode, opts := range map[string][]otellock.Option{
		"default": nil,
		"all":     {otellock.WithSpans(otellock.All)},
		"none":    {otellock.WithSpans(otellock.None)},
		"holds":   {otellock.WithSpans(otellock.None), otellock.WithHoldSpans()},
	} {
		provider, recorder := newTracer(t)
		instruments, _ := newInstruments(t, append(opts, otellock.WithTracerProvider(provider))...)
		locks := locktest.New(t, core.WithObserver(instruments.Observe), core.WithName("account"))
		ctx, request := provider.Tracer("test").Start(t.Context(), "request")
		first, err := locks.Lock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := locks.TryLock(ctx, "k"); !errors.Is(err, core.ErrBusy) {
			t.Errorf("try: %v", err)
		}
		begun, done := time.Now(), make(chan struct{})
		go func() {
			defer close(done)
			if second, err := locks.Lock(ctx, "k"); err != nil {
				t.Errorf("lock: %v", err)
			} else {
				_ = second.Release(ctx)
			}
		}()
		locks.AwaitWaiting("k", 1)
		_ = first.Release(ctx)
		suite.AwaitClosed(t, "the second holder has released", done)
		request.End()
		for _, span := range recorder.Ended() {
			if span.SpanContext().SpanID() == request.SpanContext().SpanID() {
				continue
			}
			if span.Parent().SpanID() != request.SpanContext().SpanID() || span.SpanKind() != trace.SpanKindInternal {
				t.Errorf("%s: %s has another parent or kind", mode, textOf(span))
			}
			if strings.Contains(textOf(span), "grant=passed") && (span.StartTime().Before(begun) || !span.EndTime().After(span.StartTime())) {
				t.Errorf("%s: the wait is from %v to %v", mode, span.StartTime(), span.EndTime())
			}
			spans[mode] = append(spans[mode], textOf(span))
		}
	}
	const about = " lock.name=account operation=lock process=id"
	free := normal("acquire" + about + digest + " outcome=acquired grant=free")
	busy := normal("acquire" + about + digest + " outcome=busy")
	passed := normal("acquire" + about + digest + " outcome=acquired grant=passed")
	hold := normal("hold" + about + digest + " lost=false")
	want := map[string][]string{"default": {busy, passed}, "all": {free, busy, passed}, "holds": {hold, hold}}
	if fmt.Sprint(spans) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", spans, want)
	}
}

// digestOf returns the digest of a key in events.
func digestOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}

// otellock begins no trace: without a span in the context, and under one that is not sampled, there
// is no span. A span that has ended still has its trace.
func TestSpansNeedATraceThatIsRecorded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sampler sdktrace.Sampler
		request bool
		ended   bool
		want    int
	}{
		"sampled":     {sdktrace.AlwaysSample(), true, false, 1},
		"ended":       {sdktrace.AlwaysSample(), true, true, 1},
		"not sampled": {sdktrace.NeverSample(), true, false, 0},
		"no trace":    {sdktrace.AlwaysSample(), false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider, recorder := newTracer(t, sdktrace.WithSampler(sdktrace.ParentBased(test.sampler)))
			instruments, _ := newInstruments(t, otellock.WithTracerProvider(provider), otellock.WithSpans(otellock.All))
			locks := locktest.New(t, core.WithObserver(instruments.Observe))
			ctx, span := t.Context(), trace.SpanFromContext(t.Context())
			if test.request {
				ctx, span = provider.Tracer("test").Start(ctx, "request")
			}
			if test.ended {
				span.End()
			}
			lease, err := locks.Lock(ctx, "k")
			if err != nil {
				t.Fatal(err)
			}
			_ = lease.Release(ctx)
			got := 0
			for _, ended := range recorder.Ended() {
				if ended.Name() == "reqlock.acquire" {
					got++
				}
			}
			if got != test.want {
				t.Errorf("%d spans, want %d", got, test.want)
			}
		})
	}
}

// A span of a failure has its kind, and no text of the error: it may be the program's own.
func TestSpansOfFailuresHaveNoText(t *testing.T) {
	t.Parallel()
	provider, recorder := newTracer(t)
	instruments, _ := newInstruments(t, otellock.WithTracerProvider(provider), otellock.WithHoldSpans())
	locks := locktest.New(t, core.WithObserver(instruments.Observe), core.WithMaxHold(time.Millisecond))
	ctx, request := provider.Tracer("test").Start(t.Context(), "request")
	failing := core.KeyOf(func(string) (string, error) { return "", errors.New("secret") })
	if _, _, err := core.Enter(ctx, locks.Locker, "", failing); err == nil {
		t.Error("entered")
	}
	lease, err := locks.Lock(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	suite.AwaitClosed(t, "the lease ends", lease.Context().Done())
	_ = lease.Release(ctx)
	request.End()
	var got []string
	for _, span := range recorder.Ended() {
		got = append(got, textOf(span))
	}
	want := []string{
		normal("acquire operation=lock process=id outcome=key_error error.type=key_error Error"),
		normal("hold operation=lock process=id key.digest=" + digestOf("k") + " lost=true cause=max_hold error.type=max_hold Error"),
		"request",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
