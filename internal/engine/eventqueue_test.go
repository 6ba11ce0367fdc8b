package engine

import (
	"context"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A blocker is an observer that blocks at the events of the engine's goroutines while held is not
// nil. It records the events that it has received.
type blocker struct {
	recorder
	held  chan struct{}
	calls atomic.Int32 // that block
}

func (b *blocker) observe(e Event) {
	if e.Kind != Acquired && b.held != nil {
		b.calls.Add(1)
		<-b.held
		b.calls.Add(-1)
	}
	b.recorder.observe(e)
}

// An observer that blocks at renewals holds up neither the renewals nor their goroutines, and no
// release either. Once it receives again, it gets the events in order.
func TestObserverThatBlocksLeavesOneGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _, _ := newEngine()
		b := &blocker{held: make(chan struct{})}
		e.hooks.Observe = b.observe
		r := request(0)
		r.TTL = 100 * time.Millisecond
		h := hold(t, e, r)
		sleep(10 * time.Second)
		if n := b.calls.Load(); n != 1 {
			t.Errorf("%d calls of the observer block after 300 renewals", n)
		}
		h.BeginRelease()
		<-h.done
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Close(ctx); err == nil {
			t.Error("Close does not wait for the observer")
		}
		close(b.held)
		closes(t, e)
		events := b.all()
		if n := len(b.of(Renewed)); n < 250 || events[len(events)-1].Kind != Released {
			t.Errorf("%d renewals, and the last event is %+v", n, events[len(events)-1])
		}
		if !slices.IsSortedFunc(b.of(Renewed), func(x, y Event) int { return int(x.Held - y.Held) }) {
			t.Error("the renewals are not in order")
		}
	})
}

// The events that an operator needs have room while renewals fill the queue. Each burst of dropped
// events is reported once, with a count of each kind, at its place in the order.
func TestQueueDropsByKind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _, _ := newEngine()
		b := &blocker{held: make(chan struct{})}
		e.hooks.Observe = b.observe
		e.observeLater(queuedEvent{Event: Event{Kind: Restored}})
		synctest.Wait() // the observer has this event, so the queue is empty

		const dropped = 10
		sent := []Kind{Renewed, Lost, OutcomeUnknown, Warned, HeldLong}
		for _, kind := range sent {
			for range eventRoom + dropped {
				e.observeLater(queuedEvent{Event: Event{Kind: kind}})
			}
		}
		close(b.held)
		synctest.Wait()
		e.observeLater(queuedEvent{Event: Event{Kind: Released}})
		synctest.Wait()

		want := Dropped{Renewed: dropped, HeldLong: eventRoom + dropped, Lost: dropped, OutcomeUnknown: dropped, Warned: dropped}
		events := b.all()
		const report = eventRoom + 1                                       // after the renewals that had room
		if got, ok := events[report].Err.(*Dropped); !ok || *got != want { //nolint:errorlint // the type itself
			t.Errorf("the report is %+v, want %v", events[report], want)
		}
		for _, kind := range sent[:4] {
			events = slices.DeleteFunc(events, func(event Event) bool { return event.Kind == kind && event.Err == nil })
		}
		if len(events) != 3 || len(b.all()) != 3+4*eventRoom {
			t.Errorf("%d events, and the others are %+v", len(b.all()), events)
		}
		if q := &e.events; q.running || len(q.waiting) > 0 || q.used != [kindCount]int{} || cap(q.waiting) > maxSpare {
			t.Errorf("the queue is empty: running %t, %d of %d, %v", q.running, len(q.waiting), cap(q.waiting), q.used)
		}
	})
}

// The events behind one at which the observer ends its goroutine are delivered, too.
func TestQueueGoesOnAfterTheEndOfItsGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _, r := newEngine()
		e.hooks.Observe = func(event Event) {
			r.observe(event)
			runtime.Goexit()
		}
		for range 3 {
			e.observeLater(queuedEvent{Event: Event{Kind: Renewed}})
		}
		if err := e.Close(t.Context()); err != nil || len(r.all()) != 3 {
			t.Errorf("%d events, %v", len(r.all()), err)
		}
	})
}

// A long queue keeps no memory of events that were delivered.
func TestQueueReusesItsMemory(t *testing.T) {
	t.Parallel()
	var q eventQueue
	for range 100 {
		q.push(queuedEvent{Event: Event{Kind: Renewed}})
	}
	for range 10_000 {
		q.push(queuedEvent{Event: Event{Kind: Renewed}})
		if event, more := q.pop(); !more || event.Kind != Renewed {
			t.Fatal("the queue is empty")
		}
	}
	if got := cap(q.waiting); got > 1000 {
		t.Errorf("room for %d events, for at most 101", got)
	}
}

// The report of an unknown outcome is noted in the record after it was observed. A report that was
// dropped is not noted, so that the next copy reports again.
func TestUnknownOutcomeIsNotedOnceObserved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		b := &blocker{held: make(chan struct{})}
		e.hooks.Observe = b.observe
		var noted atomic.Int32
		s.before.set(func(string, storetest.AnyRequest) error { noted.Add(1); return nil })
		for range eventRoom + 10 {
			e.reportUnknown(Event{Kind: OutcomeUnknown, Key: "k"}, "attempt")
		}
		synctest.Wait()
		if noted.Load() > 0 {
			t.Error("noted before it was observed")
		}
		close(b.held)
		synctest.Wait()
		if got := len(b.of(OutcomeUnknown)); int(noted.Load()) != got || got > eventRoom+1 {
			t.Errorf("%d notes of %d reports", noted.Load(), got)
		}
		closes(t, e)
	})
}

// A larger variable that a closure captures is allocated on its own: each release and each
// renewal would cost one allocation more.
func TestEventIsCapturedByValue(t *testing.T) {
	t.Parallel()
	if size := reflect.TypeFor[Event]().Size(); size > 128 {
		t.Errorf("an Event has %d bytes", size)
	}
}
