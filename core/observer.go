package core

import (
	"fmt"
	"runtime"
	"sync/atomic"
)

// An observer is a function of WithObserver.
type observer struct {
	observe func(Event)
	// reported has a bit for each kind of event at which a panic of the function was reported.
	reported atomic.Uint32
}

// notify sends an event to all observers.
func (s *settings) notify(event Event) {
	event.Process = s.process
	s.notifyEach(s.observers, event)
}

// notifyEach calls the observers one after the other. A panic ends with the call of the
// observer. The end of a goroutine cannot be stopped, so the other observers are called
// meanwhile.
func (s *settings) notifyEach(observers []*observer, event Event) {
	if len(observers) == 0 {
		return
	}
	returned := false
	defer func() {
		if !returned {
			s.reportPanic(observers[0], event, recover())
		}
		s.notifyEach(observers[1:], event)
	}()
	observers[0].observe(event)
	returned = true
}

// reportPanic reports to the logger and to the other observers that an observer has panicked, or has
// ended its goroutine if caught is nil. It does so once for each kind of event. The logger gets the
// stack, too.
func (s *settings) reportPanic(broken *observer, event Event, caught any) {
	bit := uint32(1) << event.Kind
	if broken.reported.Or(bit)&bit != 0 {
		return
	}
	warning := Event{Kind: Warned, Process: s.process, Err: panicError(event.Kind, caught), ctx: event.ctx}
	s.log.panicked(warning)
	for i, other := range s.observers {
		if other != broken && (s.log == nil || i > 0) {
			s.notifyEach(s.observers[i:i+1], warning)
		}
	}
}

// panicError describes a panic without its value, which may contain a key. A runtime error
// contains none.
func panicError(kind EventKind, caught any) error {
	switch caught := caught.(type) {
	case nil:
		return fmt.Errorf("reqlock: an observer ended its goroutine at the event %q, as t.FailNow does: an observer must return", kind)
	case runtime.Error:
		return fmt.Errorf("reqlock: an observer panicked at the event %q: %s", kind, caught.Error())
	default:
		return fmt.Errorf("reqlock: an observer panicked at the event %q: %T", kind, caught)
	}
}
