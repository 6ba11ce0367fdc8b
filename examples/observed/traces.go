package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/reqlock/reqlock/otellock"
)

const (
	nameWidth = 34 // of the column with the names of spans
	barWidth  = 30 // of the column with the time of spans
)

// A tree prints the spans of one trace, each below its parent, with a bar that shows when
// it ran.
type tree struct {
	out    io.Writer
	spans  []sdktrace.ReadOnlySpan // in the order of their beginnings
	begun  time.Time
	lasted time.Duration
}

// printTrace prints a trace.
func printTrace(out io.Writer, spans []sdktrace.ReadOnlySpan) {
	slices.SortStableFunc(spans, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	t := tree{out: out, spans: spans, begun: spans[0].StartTime()}
	ids := map[trace.SpanID]bool{}
	for _, span := range spans {
		t.lasted = max(t.lasted, span.EndTime().Sub(t.begun))
		ids[span.SpanContext().SpanID()] = true
	}
	fmt.Fprintf(out, "trace %.8s\n", spans[0].SpanContext().TraceID())
	for _, span := range spans {
		if !ids[span.Parent().SpanID()] { // the first one, or its parent is in another process
			t.print(span, 1)
		}
	}
	fmt.Fprintln(out)
}

// print prints a span and those below it.
func (t tree) print(span sdktrace.ReadOnlySpan, depth int) {
	name := strings.Repeat("  ", depth) + span.Name()
	name += strings.Repeat(" ", max(0, nameWidth-utf8.RuneCountInString(name)))
	line := fmt.Sprintf("%s %4d ms %s %4d ms  %s", name, span.StartTime().Sub(t.begun).Milliseconds(), t.bar(span),
		span.EndTime().Sub(span.StartTime()).Milliseconds(), about(span))
	fmt.Fprintln(t.out, strings.TrimRight(line, " "))
	for _, below := range t.spans {
		if below.Parent().SpanID() == span.SpanContext().SpanID() {
			t.print(below, depth+1)
		}
	}
}

// bar returns the time of a span as a part of the time of its trace.
func (t tree) bar(span sdktrace.ReadOnlySpan) string {
	column := func(at time.Time) int { return int(barWidth * at.Sub(t.begun) / max(t.lasted, 1)) }
	from := min(column(span.StartTime()), barWidth-1)
	to := max(column(span.EndTime()), from+1)
	return strings.Repeat("·", from) + strings.Repeat("█", to-from) + strings.Repeat("·", barWidth-to)
}

// about returns the attributes of a span that a reader wants: the status of an answer, the
// outcome of a lock, and how the lock was handed over.
func about(span sdktrace.ReadOnlySpan) string {
	var found []string
	for _, key := range []attribute.Key{"http.response.status_code", otellock.OutcomeKey, otellock.GrantKey, otellock.LockNameKey} {
		for _, pair := range span.Attributes() {
			if pair.Key == key {
				found = append(found, pair.Value.String())
			}
		}
	}
	return strings.Join(found, ", ")
}

// A printer is a processor of spans that prints each trace once all its spans have ended. It
// is safe for concurrent use.
type printer struct {
	out io.Writer

	mu      sync.Mutex
	running map[trace.TraceID]*running
	printed chan struct{} // is closed when a trace is printed
}

// running is a trace with spans that have not ended.
type running struct {
	open  int
	ended []sdktrace.ReadOnlySpan
}

func newPrinter(out io.Writer) *printer {
	return &printer{out: out, running: map[trace.TraceID]*running{}, printed: make(chan struct{})}
}

// OnStart is called when a span begins.
func (p *printer) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := span.SpanContext().TraceID()
	if p.running[id] == nil {
		p.running[id] = &running{}
	}
	p.running[id].open++
}

// OnEnd is called when a span ends.
func (p *printer) OnEnd(span sdktrace.ReadOnlySpan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := span.SpanContext().TraceID()
	r := p.running[id]
	r.ended = append(r.ended, span)
	if r.open--; r.open > 0 {
		return
	}
	delete(p.running, id)
	printTrace(p.out, r.ended)
	close(p.printed)
	p.printed = make(chan struct{})
}

// ForceFlush returns when each trace is printed, or ctx ends.
func (p *printer) ForceFlush(ctx context.Context) error {
	for {
		p.mu.Lock()
		left, printed := len(p.running), p.printed
		p.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-printed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Shutdown does nothing.
func (p *printer) Shutdown(context.Context) error { return nil }
