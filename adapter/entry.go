package adapter

import (
	"context"
	"net/http"

	"github.com/reqlock/reqlock/internal/bridge"
)

// An Entry is a request that has entered a middleware, which lets it run or refuses it. Lock.Enter
// and the Begin of an idempotent middleware return one, also with an error:
//
//	entry, err := lock.Enter(r.Context(), r)
//	defer entry.Leave()
//	if err != nil {
//		entry.Refuse(w, err)
//		return
//	}
//	next.ServeHTTP(w, entry.Request(r))
//	entry.Returned()
//
// If the request is also in an idempotent middleware outside, that one learns from the Entry what
// has become of it, and ends its attempt by it. An Entry of no middleware is not valid. Only the
// goroutine of the request may use it.
type Entry struct {
	ctx  context.Context
	held bridge.Held // nil if there are no locks
	wait *waitCheck
	pass *pass // nil if the request is in no Exchange

	mistakes *mistakeCheck // of the middleware
}

// Context returns the context of the request behind the middleware, with its lease.
func (e Entry) Context() context.Context { return e.ctx }

// Request returns a request with that context. Call it once. A request of which the server may still have to read
// the body is checked: if the wait of the middleware is not shorter than the ReadTimeout of the
// server, the observers get one core.Warned event.
func (e Entry) Request(r *http.Request) *http.Request {
	if e.held == nil && e.pass == nil { // it has the same context
		return r
	}
	if e.wait != nil {
		e.wait.checkBody(r)
	}
	if e.held != nil {
		e.mistakes.checkTwice(e.held, r.URL.Path)
	}
	return r.WithContext(e.ctx)
}

// Returned says that the handler behind the middleware has returned: it did not panic. Exchange.Run
// and Replay say so by themselves.
func (e Entry) Returned() {
	if e.pass != nil {
		e.pass.returned(context.Cause(e.ctx))
	}
}

// Leave frees the locks. The middleware calls it in each case. Further calls do nothing.
func (e Entry) Leave() {
	if e.held != nil {
		e.held.Release()
	}
	e.pass.finish()
}

// Refuse answers by WriteRefusal a request that the middleware refuses because of err.
func (e Entry) Refuse(w http.ResponseWriter, err error) {
	e.pass.answers()
	e.mistakes.refuses(err)
	e.mistakes.answered(err, writeRefusal(w, err))
	if e.pass != nil {
		e.pass.refuseOnce(refusedBy(err))
	}
}

// Guard returns the writer for the error handler of a program, which answers a request that the
// middleware refuses because of err.
func (e Entry) Guard(w http.ResponseWriter, err error) *Guard {
	e.mistakes.refuses(err)
	guard := e.pass.guard(w, err)
	guard.mistakes = e.mistakes
	if e.pass != nil {
		e.pass.refusing = refusing{guarded: guard, err: err}
	}
	return guard
}

// SetReturned says that the middleware returns an error to its framework, which answers a refused
// request by it later. status is the one that the error asks for. isOurs says that the error is the
// one of the adapter, and not of an error handler of the program. If the Guard has answered, or the
// error is nil, the Guard's answer counts.
func (e Entry) SetReturned(answer error, status int, isOurs bool) {
	if isOurs && status >= http.StatusInternalServerError {
		refusal := RefusalOf(answer)
		refusal.HTTP = status // the key may have chosen it
		e.mistakes.answered(answer, refusal)
	}
	if e.pass == nil {
		return
	}
	refusal := refused{status: status, cause: e.pass.err}
	switch guard := e.pass.guarded; {
	case answer == nil && guard != nil, guard != nil && guard.Answered():
		refusal = guard.refused(e.pass.err)
	case isOurs:
		refusal = refusedBy(e.pass.err)
		refusal.status = status
	}
	refusal.err = answer
	e.pass.refuseOnce(refusal)
}

// SetAnswered says that the key of a refused request has answered by itself on the framework's
// writer, with the status and with size bytes of body.
func (e Entry) SetAnswered(status, size int) {
	if e.pass == nil {
		return
	}
	e.pass.refusedByKey(status, size, e.pass.err)
	e.pass.refusing = refusing{}
}

// IsInside reports whether the request is in an idempotent middleware outside. That one answers for
// a handler whose lease was lost: see LossOf.
func (e Entry) IsInside() bool { return e.pass != nil }

// refusing is how a middleware refuses a request, as long as the pass has not recorded it.
type refusing struct {
	err     error  // why
	guarded *Guard // the writer of the error handler, or nil
}

// refuseOnce records that the middleware has refused the request.
func (p *pass) refuseOnce(refusal refused) {
	p.refused(refusal)
	p.refusing = refusing{}
}

// finish ends the pass. A refusal that was not recorded yet is the answer of the error handler, or
// else one of which only the status is known. Exception: an RPC has only errors that were returned.
func (p *pass) finish() {
	if p == nil {
		return
	}
	switch {
	case p.guarded != nil:
		p.refuseOnce(p.guarded.refused(p.err))
	case p.err != nil && p.in.recorder != nil:
		p.refuseOnce(refused{status: RefusalOf(p.err).HTTP, ours: true, cause: p.err})
	}
	p.leave()
}

// refuseBecauseOf records why the middleware refuses the request. How it does so follows.
func (p *pass) refuseBecauseOf(err error) {
	if p != nil {
		p.refusing = refusing{err: err}
	}
}
