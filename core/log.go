package core

import (
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// faultPause is how long after the line about a fault of Redis no other such line is logged.
const faultPause = 10 * time.Second

// An eventLog logs the events that an operator should see: see WithLogger. It is safe for
// concurrent use.
type eventLog struct {
	logger    *slog.Logger // nil: slog.Default at the time of the event
	process   string       // the id of the process
	failsOpen atomic.Bool  // the Locker or a view of it has WithFailOpen

	mu      sync.Mutex
	last    time.Time // of the last line about a fault
	skipped int       // faults without a line since then
}

// observe is the observer of WithLogger.
func (l *eventLog) observe(e Event) {
	if !isWarning(e) {
		return
	}
	logger := l.out()
	if !logger.Enabled(e.Context(), slog.LevelWarn) {
		return
	}
	var extra []slog.Attr
	switch e.Kind {
	case Refused, Renewed, Released, Unlocked:
		logs, skipped := l.admit(time.Now())
		if !logs {
			return
		}
		if skipped > 0 {
			extra = append(extra, slog.Int("more", skipped))
		}
	case Outage:
		if l.failsOpen.Load() {
			extra = append(extra, slog.String("fail_open", "requests with WithFailOpen run without their locks"))
		}
	case Acquired, Waiting, Lost, HeldLong, Replayed, Committed, Restored, Warned, OutcomeUnknown, Closing, Recovered, Registered, Searched,
		HandedOver, OperatorResolved, OperatorRevoked, OperatorFreed:
	}
	logEvent(logger, slog.LevelWarn, e, append(extra, slog.String("process", l.process)))
}

// out returns the logger.
func (l *eventLog) out() *slog.Logger {
	if l.logger == nil {
		return slog.Default()
	}
	return l.logger
}

// panicked logs that an observer has panicked, with the stack. The handler of the logger may panic,
// too, for the same reason as the observer. A nil eventLog does nothing.
func (l *eventLog) panicked(warning Event) {
	defer func() { _ = recover() }()
	if l != nil {
		l.out().Error(warning.Err.Error(), slog.String("process", l.process), slog.String("stack", string(debug.Stack())))
	}
}

// admit reports whether a fault gets a line now, and how many got none since the last line.
func (l *eventLog) admit(now time.Time) (logs bool, skipped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.last.IsZero() && now.Sub(l.last) < faultPause {
		l.skipped++
		return false, 0
	}
	skipped, l.last, l.skipped = l.skipped, now, 0
	return true, skipped
}
