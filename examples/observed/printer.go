package main

import (
	"context"
	"io"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

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
