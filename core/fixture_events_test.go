package core_test

import (
	"log"
	"log/slog"
	"os"
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

// A logBuffer is a log that a Locker may still write.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write adds a line.
func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Reset removes all lines.
func (b *logBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}

// logger returns a logger of all levels.
func (b *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// beDefault makes the log that of slog.Default, until restore is called.
func (b *logBuffer) beDefault() (restore func()) {
	before, flags := slog.Default(), log.Flags()
	slog.SetDefault(b.logger())
	return func() {
		slog.SetDefault(before)
		log.SetOutput(os.Stderr) // SetDefault has connected package log to the logger
		log.SetFlags(flags)
	}
}

// all returns the options that log each event.
func (b *logBuffer) all(opts ...core.Option) []core.Option {
	return append(opts, core.WithLogger(b.logger()), core.WithObserver(core.SlogObserver(b.logger())))
}
