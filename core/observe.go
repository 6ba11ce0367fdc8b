package core

import "github.com/reqlock/reqlock/internal/engine"

// kinds turns the engine's kinds of event into this package's.
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
}

// handovers turns the engine's handovers into this package's.
var handovers = [...]Handover{
	0:              0,
	engine.Free:    Free,
	engine.Awaited: Awaited,
	engine.Passed:  Passed,
	engine.Handed:  Handed,
}

// observe words an event of the engine and tells the observers of it.
func (s *settings) observe(e engine.Event) {
	event := Event{
		Kind:     kinds[e.Kind],
		Key:      EventKey{e.Key},
		Queued:   e.Queued,
		Waited:   e.Waited,
		Held:     e.Held,
		Handover: handovers[e.Handover],
	}
	switch {
	case e.Loss != engine.NotLost:
		event.Err = causeOf(e.Loss)
	case e.Kind == engine.Refused:
		event.Err = refusalOf(e.Err, s.retryAfter)
	case e.Err != nil:
		event.Err = &Error{Kind: ErrUnavailable, Cause: e.Err}
	}
	s.tell(event)
}

// tell tells the observers of an event.
func (s *settings) tell(event Event) {
	for _, observe := range s.observers {
		observe(event)
	}
}

// observeUnlocked tells that a request runs without its locks.
func (l *Locker) observeUnlocked(keys []string, err error) {
	for _, key := range keys {
		l.settings.tell(Event{Kind: Unlocked, Key: EventKey{key}, Err: err})
	}
}
