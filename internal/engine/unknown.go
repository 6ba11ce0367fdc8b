package engine

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// reportUnknown reports to the owner that an attempt which this process did not run has an
// unknown outcome. The event has the name and the context of a caller who asked for the key.
// Only then it notes the report in the record, so that no report is lost: if the queue drops the
// event, the next copy reports again. Copies of the request
// that come before the note may report it, too. An engine without an owner who observes leaves
// the report to another process.
func (e *Engine) reportUnknown(event Event, attempt string) {
	if e.hooks.Observe == nil {
		return
	}
	e.observeLater(queuedEvent{event, func() {
		e.work.Add()
		note := store.ResolveRequest{Key: event.Key, Bound: e.bound, Seen: attempt, Resolution: store.NoteReported}
		e.store.Resolve(note, func(store.ResolveStatus, error) { e.work.Done() }) // if it fails, the next copy reports again
	}})
}

// observeUnknown reports to the owner that the hold's own attempt was left with an unknown
// outcome: by EndUnknown, or because the store did not accept its Commit or Done.
func (h *Hold) observeUnknown(err error, after *callbacks) {
	switch {
	case h.request.Attempt == nil:
		return
	case h.ending == EndUnknown:
		err = h.cause
	case h.ending.isFinal() && err != nil:
	default:
		return
	}
	event := Event{Kind: OutcomeUnknown, Held: time.Since(h.since), Ending: h.ending, GoesOn: h.goesOn, Err: err}.of(h)
	h.report(event, after)
}
