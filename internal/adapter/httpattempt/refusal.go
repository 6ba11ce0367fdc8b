package httpattempt

import (
	"context"
	"net/http"
	"reflect"
)

// A refusal is what a Recorder knows of the last refusal by a middleware of reqlock that
// stands inside.
type refusal struct {
	status   int   // with which the request is refused; 0 if there was no refusal, or it has none
	ours     bool  // reqlock answers it; otherwise the application's error handler does
	err      error // that is the refusal, in a framework whose middlewares return errors
	answered bool  // it is the recorded answer
}

// An inside is the context of a handler in an Exchange. Middlewares of reqlock find the
// Recorder by it.
type inside struct {
	context.Context
	recorder *Recorder
}

// recorderKey is the key of a Recorder in the context of its handler.
type recorderKey struct{}

// Value returns the Recorder, or a value of the context of the lease.
func (c *inside) Value(key any) any {
	if key == (recorderKey{}) {
		return c.recorder
	}
	return c.Context.Value(key)
}

// recorderOf returns the innermost Recorder of a context, or nil.
func recorderOf(ctx context.Context) *Recorder {
	r, _ := ctx.Value(recorderKey{}).(*Recorder)
	return r
}

// A Pass is a request on its way through a middleware of reqlock, which lets the request run
// or refuses it. The Exchange around the middleware learns which.
type Pass struct {
	recorder *Recorder // nil if the request is in no Exchange
	refusals int       // before
	answered bool      // before
}

// Enter begins the Pass of a request with the context. The middleware calls Leave when the
// request has run, or Refused.
func Enter(ctx context.Context) Pass {
	r := recorderOf(ctx)
	if r == nil {
		return Pass{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return Pass{r, r.refusals, r.hasAnswer()}
}

// Leave ends the Pass of a request that was let run. If nothing inside has refused it, its
// handler may have run.
func (p Pass) Leave() {
	r := p.recorder
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran = r.ran || r.refusals == p.refusals
}

// Refused ends the Pass of a request that was refused. The middleware has answered with the
// status, or returns err to a framework that will. ours says that reqlock or the key function
// has made this answer. Otherwise the application's error handler has, which may have run the
// request by other means.
func (p Pass) Refused(status int, ours bool, err error) {
	r := p.recorder
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals++
	if !r.refusal.answered { // if an earlier one is the answer, no later one is
		r.refusal = refusal{status: status, ours: ours, err: err, answered: !p.answered && r.hasAnswer()}
	}
}

// NoteLate records a status that came after the answer had begun. A success after a refusal
// shows that something has run.
func (r *Recorder) NoteLate(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLate(status)
}

// noteLate is NoteLate for a caller that holds mu.
func (r *Recorder) noteLate(status int) {
	isSuccess := http.StatusOK <= status && status < http.StatusBadRequest
	r.ran = r.ran || r.refusal.answered && isSuccess
}

// noteReturned records the error that a handler has returned to its framework. If it is the
// refusal, and nothing is answered yet, the framework answers with the refusal.
func (r *Recorder) noteReturned(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusal.err != nil && !r.hasAnswer() && endsIn(err, r.refusal.err) {
		r.refusal.answered = true
	}
}

// endsIn reports whether err is target, or wraps it and no other error beside it.
func endsIn(err, target error) bool {
	if !reflect.ValueOf(target).Comparable() { // == would panic
		return false
	}
	for err != nil {
		if err == target { //nolint:errorlint // the chain is walked here
			return true
		}
		wrapper, wraps := err.(interface{ Unwrap() error })
		if !wraps {
			return false
		}
		err = wrapper.Unwrap()
	}
	return false
}

// endsRefused reports whether the answer of a handler that has returned, which has the
// status, is the refusal of a middleware inside.
//
// The application's error handler may answer with another status than 4xx because it has run
// the request by other means. Then it is no refusal, and counts as the handler's answer.
//
// A writer in between may keep the answer back, or the error handler may only choose its
// status, so that nothing shows where the answer comes from. Then the refusal counts if it is
// 4xx and the answer has the same status: this status of a handler, too, says that nothing was
// done.
func (r *Recorder) endsRefused(status int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	refusal := &r.refusal
	isClientError := status/100 == http.StatusBadRequest/100
	switch {
	case refusal.status == 0:
		return false
	case refusal.answered:
		return refusal.ours || isClientError
	default:
		return isClientError && status == refusal.status
	}
}
