package engine

import (
	"slices"
	"sync"
)

// eventRoom is how many events of one kind may wait in the queue, for the kinds of ownRoom, and
// how many events of all other kinds together.
const eventRoom = 4096

// ownRoom lists the kinds for which the queue has room of their own, because an operator needs
// them. All other kinds share one room.
var ownRoom = [...]Kind{Lost, OutcomeUnknown, Warned, Outage}

// An eventQueue passes the events of the engine's own goroutines to the owner, one at a time
// and in order. If the owner blocks, the queue drops the events for which there is no room. Its
// goroutine lives only while events wait, and Close waits for it.
type eventQueue struct {
	mu      sync.Mutex
	waiting []queuedEvent
	head    int            // the index of the first event in waiting
	used    [kindCount]int // events that wait, by their room
	dropped Dropped        // since the owner was last notified
	noted   bool           // the event about dropped waits
	running bool           // the goroutine runs
}

// A queuedEvent is an event, and what to do once it was observed, if that is not nil.
type queuedEvent struct {
	Event
	observed func()
}

// Dropped is how many events of each kind the queue has dropped. As the Err of a Warned event it
// is a burst: those that were dropped since the last such event.
type Dropped [kindCount]int

// Error returns a short text. The owner of the engine makes the text for its users.
func (*Dropped) Error() string { return "events were dropped" }

// roomOf returns the index of the room of a kind: the kind itself, or 0 for the shared room.
func roomOf(kind Kind) Kind {
	if slices.Contains(ownRoom[:], kind) {
		return kind
	}
	return 0
}

// report adds an event for the owner, if there is one.
func (e *Engine) report(event Event, after *callbacks) {
	if e.observes(event) {
		after.events = append(after.events, event)
	}
}

// observeAll passes events to the owner on the goroutine of a caller. If the owner ends the
// goroutine, the queue gets the other events.
func (e *Engine) observeAll(events []Event) {
	next := 0
	defer func() {
		for ; next < len(events); next++ {
			e.observeLater(queuedEvent{Event: events[next]})
		}
	}()
	for next < len(events) {
		next++
		e.observe(events[next-1])
		if events[next-1].Token != "" && e.addWork() {
			e.noteOwn(events[next-1])
			e.work.Done()
		}
	}
}

// observeLater passes an event to the owner through the queue. It does not wait for the owner. It
// reports false if the event was dropped.
func (e *Engine) observeLater(event queuedEvent) (queued bool) {
	if !e.observes(event.Event) {
		return false
	}
	queued, start := e.events.push(event)
	if start {
		e.spawn(e.deliver)
	}
	return queued
}

// deliver passes the events of the queue to the owner until none waits.
func (e *Engine) deliver() {
	returned := false
	defer func() {
		if !returned { // the owner has ended the goroutine
			e.spawn(e.deliver)
		}
	}()
	for next, more := e.events.pop(); more; next, more = e.events.pop() {
		e.deliverOne(next)
	}
	returned = true
}

func (e *Engine) deliverOne(event queuedEvent) {
	if event.observed != nil {
		defer event.observed()
	}
	e.observe(event.Event)
	e.noteOwn(event.Event)
}

// push adds an event, or drops it. It also reports whether the caller has to start the goroutine.
func (q *eventQueue) push(event queuedEvent) (queued, start bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	room := roomOf(event.Kind)
	switch {
	case q.used[room] < eventRoom:
		q.used[room]++
		q.add(event)
		queued = true
	default:
		q.dropped[event.Kind]++
		if !q.noted {
			q.noted = true
			q.add(queuedEvent{}) // pop replaces it by the event about dropped
		}
	}
	start = !q.running
	q.running = true
	return queued, start
}

// add adds an event to the end. It moves the events to the front of the slice if half of the
// slice is free.
func (q *eventQueue) add(event queuedEvent) {
	if n := len(q.waiting); n == cap(q.waiting) && q.head > n/2 {
		n = copy(q.waiting, q.waiting[q.head:])
		clear(q.waiting[n:])
		q.waiting, q.head = q.waiting[:n], 0
	}
	q.waiting = append(q.waiting, event)
}

// maxSpare is the largest capacity that an empty queue keeps.
const maxSpare = 64

// pop removes the first event. If there is none, the goroutine ends.
func (q *eventQueue) pop() (event queuedEvent, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.waiting) {
		q.running, q.head, q.waiting = false, 0, q.waiting[:0]
		if cap(q.waiting) > maxSpare {
			q.waiting = nil
		}
		return queuedEvent{}, false
	}
	event, q.waiting[q.head] = q.waiting[q.head], queuedEvent{}
	q.head++
	if event.Kind != 0 {
		q.used[roomOf(event.Kind)]--
		return event, true
	}
	dropped := q.dropped
	q.dropped, q.noted = Dropped{}, false
	return queuedEvent{Event: Event{Kind: Warned, Err: &dropped}}, true
}
