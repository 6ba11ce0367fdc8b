package core_test

import (
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/reqlock/reqlock/core"
)

// A recorder keeps the events that an observer receives.
type recorder struct {
	mu       sync.Mutex
	recorded []core.Event
}

// record is the observer.
func (r *recorder) record(event core.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorded = append(r.recorded, event)
}

// all returns all events.
func (r *recorder) all() []core.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.recorded)
}

// of returns the events of one kind.
func (r *recorder) of(kind core.EventKind) []core.Event {
	return slices.DeleteFunc(r.all(), func(event core.Event) bool { return event.Kind != kind })
}

// namesOf returns the names in the events of a kind, in their order.
func (r *recorder) namesOf(kind core.EventKind) string {
	var names []string
	for _, event := range r.of(kind) {
		names = append(names, event.Name)
	}
	return strings.Join(names, ",")
}

// logTo is an observer that writes all events to a log.
func logTo(log io.Writer) core.Option {
	return core.WithObserver(core.SlogObserver(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
}
