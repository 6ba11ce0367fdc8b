package core

import "github.com/reqlock/reqlock/internal/engine"

// kinds maps the engine's kinds of event to the kinds of this package.
var kinds = [...]EventKind{
	engine.Acquired: Acquired,
	engine.Waiting:  Waiting,
	engine.Refused:  Refused,
	engine.Released: Released,
	engine.Renewed:  Renewed,
	engine.Lost:     Lost,
	engine.HeldLong: HeldLong,

	engine.Replayed:  Replayed,
	engine.Committed: Committed,
	engine.Restored:  Restored,
	engine.Closing:   Closing,

	engine.OutcomeUnknown: OutcomeUnknown,
}

// handovers maps the engine's handovers to the handovers of this package.
var handovers = [...]Handover{
	0:              0,
	engine.Free:    Free,
	engine.Awaited: Awaited,
	engine.Passed:  Passed,
	engine.Handed:  Handed,
}

// observe converts an event of the engine and sends it to the observers.
func (s *settings) observe(e engine.Event) {
	event := Event{
		Kind:     kinds[e.Kind],
		Key:      EventKey{e.Key},
		Queued:   e.Queued,
		Waited:   e.Waited,
		Held:     e.Held,
		Handover: handovers[e.Handover],
		Repeated: e.Repeated,
		Caller:   e.Caller,
		Holds:    e.Holds,
	}
	switch {
	case e.Loss != engine.NotLost:
		event.Err = causeOf(e.Loss)
	case e.Kind == engine.Refused:
		event.Err = refusalOf(e.Err, s.retryAfter)
	case e.Err != nil:
		event.Err = &Error{Kind: ErrUnavailable, Cause: e.Err}
	}
	s.notify(event)
}

// notify sends an event to all observers.
func (s *settings) notify(event Event) {
	for _, observe := range s.observers {
		observe(event)
	}
}

// observeUnlocked sends an Unlocked event for each key of a request that runs without locks.
// It ignores noName.
func (l *Locker) observeUnlocked(names []string, err error) {
	for _, name := range names {
		if name != noName {
			l.settings.notify(Event{Kind: Unlocked, Key: EventKey{name}, Err: err})
		}
	}
}
