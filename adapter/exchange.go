package adapter

import (
	"context"
	"maps"
	"net/http"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/internal/bridge"
)

// An Exchange is one request and its answer: the stored answer, or the answer that the
// handler will give. Only the goroutine of the request may use it.
type Exchange struct {
	attempt  *core.Attempt
	entry    Entry // of the middleware
	filter   answer.Filter
	unknown  func(core.Failure) bool
	stored   func(status int) bool
	custom   bool          // the application has set unknown or stored
	answer   answer.Answer // if replayed
	replayed bool

	recorder *Recorder
	pass     pass  // the context of the handler
	outer    *pass // in an Exchange around this one
	body     body  // of the request
	implied  int   // the status of an answer that the framework sends itself
	failed   bool  // the handler has left the answer to outer middlewares
	left     int   // the status that the handler has left to them, or 0
	err      error // the handler's, for its framework
	timedOut bool  // an error for the framework is that of a timeout
	bypassed bool  // the answer was not sent through the recorder
	around   int   // its status then

	timeout bool        // see SetTimeoutHandler
	unnamed *routeNames // if the route was not known at Begin; otherwise nil
	method  string      // of the request then

	// Set by decide: the refusal inside with which the request ends, or nil; it was refused, and
	// may have run.
	refusal     *refused
	refusedLate bool
}

// Replayed reports whether an earlier attempt has an answer. Then the adapter calls Replay,
// and otherwise Run.
func (x *Exchange) Replayed() bool { return x.replayed }

// Replay sends the stored answer of an earlier attempt. Its headers replace the headers of w with the same names,
// and all headers of w that describe an answer. Other headers of w stay: they belong to the
// new request.
func (x *Exchange) Replay(w http.ResponseWriter) {
	defer x.leave(nil)
	header := w.Header()
	maps.DeleteFunc(header, func(name string, _ []string) bool { return answer.OfAnswer(name) })
	maps.Copy(header, x.answer.Header)
	header.Set("Idempotent-Replayed", "true")
	if _, replayed := x.answer.Header["Cache-Control"]; !replayed {
		header.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(x.answer.Status)
	if len(x.answer.Body) > 0 {
		// An error means that the client has disconnected.
		_, _ = w.Write(x.answer.Body)
	}
}

// Run runs the handler of a request on a Recorder, with the context of the attempt. Then it
// ends the attempt, and sends the recorded answer to w.
//
// If the handler panics or ends its goroutine, the recorded answer is dropped: w and its
// header are as before. The panic goes on.
//
// With an error, nothing was sent, and the adapter answers as for a request that is refused: the
// handler has given no answer, because its context had ended. An empty 200 would say that all went
// well.
func (x *Exchange) Run(w http.ResponseWriter, r *http.Request, handler func(w *Recorder, r *http.Request)) error {
	detached := context.WithoutCancel(r.Context()) // the attempt has to end if the client disconnects
	leased, returned, ended := context.Background(), false, false
	var running *http.Request
	defer func() {
		if !ended {
			x.nameOutcome(running)
			x.endAbnormally(detached, returned, context.Cause(leased))
		}
	}()
	leased = x.attempt.Lease().Context()
	x.recorder = newRecorder(w, x.filter, bridge.MaxAnswer(x.attempt))
	x.outer = x.entry.pass
	x.pass = pass{Context: leased, in: &x.recorder.inside, isBase: true}
	running = r.WithContext(&x.pass) //nolint:contextcheck // derived from the request's by Begin
	running.Body = x.body.watch(r)
	handler(x.recorder, running)
	returned = true
	x.recorder.close()
	x.nameOutcome(running)
	cutOff := x.end(detached, context.Cause(leased)) //nolint:contextcheck // leased only tells why it ended
	ended = true
	if cutOff == nil {
		x.send() //nolint:contextcheck // the pass has its own
	}
	x.leave(cutOff)
	return cutOff
}

// nameOutcome names an unknown outcome by the route that a mux behind the middleware has matched. The
// other events keep their name, because gauges count them. The pattern of a redirect may be the path.
func (x *Exchange) nameOutcome(running *http.Request) {
	if x.unnamed == nil || running == nil || x.recorder.status/100 == 3 {
		return
	}
	if name := x.unnamed.of(x.method, running.Pattern); name != "" {
		bridge.NameOutcome(x.attempt, name)
	}
}

// leave says to an Exchange outside that the handler has returned, or that the answer was replayed. If
// the request is refused, that is after it.
func (x *Exchange) leave(refusal error) {
	x.entry.Returned()
	x.entry.pass.leave()
	if refusal != nil {
		x.entry.pass.refuseBecauseOf(refusal)
	}
}

// send sends the recorded answer. If that is a refusal, an Exchange around this one learns so.
func (x *Exchange) send() {
	if x.refusal == nil || x.outer == nil {
		x.recorder.send()
		return
	}
	pass := newPass(x.outer, false)
	defer pass.leave()
	x.recorder.send()
	refusal := *x.refusal
	if x.recorder.status != 0 {
		refusal.status, refusal.body = x.recorder.status, append([]byte{}, x.recorder.body...)
	}
	pass.refused(refusal)
}

// SetStatus sets the status of an answer that the framework sends after the handler, if the
// handler has written nothing. The adapter ensures that the framework sends it.
func (x *Exchange) SetStatus(status int) { x.implied = status }

// SetFailed reports that the handler has failed, and that an outer middleware will answer. status
// is the status that the handler or its error has set, or 0. One below 400 counts as 0. If the handler
// has answered, SetFailed does nothing.
func (x *Exchange) SetFailed(status int) {
	x.failed, x.left = !x.recorder.answered(), 0
	if status >= http.StatusBadRequest {
		x.left = status
	}
}

// SetError reports an error that the handler has given to its framework. Of several errors,
// the function of core.WithUnknown gets the last one.
func (x *Exchange) SetError(err error) {
	x.err = err
	x.NoteTimeout(err)
}

// SetReturned is SetError for the error that the handler has returned, with which the framework answers
// if nothing else has. status is the one that the error asks for, or 0. If the handler has lost its lease,
// SetReturned is SetLost, too. It reports whether the framework is to render the error, so that the answer
// is stored: there is one, and it is not that of a lost lease.
func (x *Exchange) SetReturned(err error, status int) (renders bool) {
	x.SetError(err)
	x.recorder.noteReturned(err, status)
	isLost := err != nil && LossOf(x.pass.Context, err, status) != nil
	if isLost {
		x.SetLost()
	}
	return err != nil && !isLost
}

// NoteTimeout is SetError for an error of which core.WithUnknown gets another one, such as the
// Message of an *echo.HTTPError: if it is that of a timeout, the handler may have taken effect.
func (x *Exchange) NoteTimeout(err error) { x.timedOut = x.timedOut || isTimeout(err) }

// SetLost reports that the handler has failed because it, or what it did, has lost a lease: see
// LossOf. Without an answer, Run returns an error. An answer that would free the key leaves the
// outcome unknown, unless core.WithUnknown is set.
func (x *Exchange) SetLost() { x.pass.interrupt() }

// SetSent reports that the answer was sent without the Recorder, with the status, or will be sent in
// pieces after RunAnswer. So it cannot be stored.
func (x *Exchange) SetSent(status int) { x.bypassed, x.around = true, status }

// SetTimeoutHandler says that the handler is an http.TimeoutHandler. If its 503 frees the key while the
// request is in no middleware of reqlock behind it, the observers get one core.Warned event.
func (x *Exchange) SetTimeoutHandler() { x.timeout = true }
