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
	note := store.ResolveRequest{Key: event.Key, Seen: attempt}
	e.observeLater(queuedEvent{event, func() { e.note(note, func() {}) }})
}

// note notes in the record that an unknown outcome was reported. If that fails, the next copy or
// search reports it again.
func (e *Engine) note(r store.ResolveRequest, done func()) {
	r.Bound, r.Resolution = e.bound, store.NoteReported
	e.work.Add()
	e.store.Resolve(r, func(store.ResolveStatus, error) {
		defer e.work.Done()
		done()
	})
}

// observeUnknown reports to the owner that the hold's own attempt was left with an unknown
// outcome: by EndUnknown, or because the store did not accept its Commit or Done.
func (h *Hold) observeUnknown(err error, after *callbacks) {
	token := ""
	switch {
	case h.request.Attempt == nil:
		return
	case h.ending == EndUnknown:
		if err == nil { // otherwise the key may hold the token, and the record cannot note the report
			token = h.token
		}
		err = nil
		if h.said != nil {
			err = h.said.cause
		}
	case h.ending.isFinal() && err != nil:
	default:
		return
	}
	event := Event{Kind: OutcomeUnknown, Held: time.Since(h.since), Ending: h.ending, GoesOn: h.goesOn, Token: token, Err: err}.of(h)
	event.Origin = h.request.Attempt.Reference
	event.Name = h.outcomeName()
	h.report(event, after)
}

// noteOwn notes in the record that the unknown outcome of an own attempt was reported, if the event
// is such a report.
func (e *Engine) noteOwn(event Event) {
	if event.Token != "" && e.hooks.Observe != nil {
		e.note(store.ResolveRequest{Key: event.Key, Token: event.Token}, func() {})
	}
}
