package adapter

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// A refused is the answer to a request that a middleware of reqlock inside an Exchange refuses.
type refused struct {
	status int    // 0: not known
	body   []byte // nil: not known
	ours   bool   // made by reqlock or the key; otherwise by a function of the application
	err    error  // with which a framework answers later; nil if the middleware has answered
	cause  error  // why the request was refused
	begun  bool   // the answer began while the middleware refused the request
}

// maxRefusal is the number of bytes of the longest refusal that is compared with an answer.
const maxRefusal = 64 << 10

// endsRefused returns the refusal that is the answer of a handler that has returned, or nil. ran
// reports whether the request may have run all the same. status is that of the answer. custom says
// that the application has chosen which failures are unknown or stored, and around that the
// answer was given without the Recorder.
//
// The answer is a refusal if it has the status and the body of that refusal. If it has more bytes
// behind, something has run after the refusal. A writer in between may change the bytes, and an
// error handler may only choose the status. So any 4xx with the status of a refusal counts as that
// refusal: this status of a handler, too, says that nothing was done. A 503 that is the refusal's own
// status counts if the answer began with the refusal, because a fallback may fail with a 503, too.
// Exceptions: 499, and an application that has chosen.
func (r *Recorder) endsRefused(status int, custom, around bool) (found *refused, ran bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isReturned(status) {
		return r.returned, r.hasRun(r.returned)
	}
	var hidden, continued *refused
	for i := range r.refusals {
		refusal := &r.refusals[i]
		if r.otherError || status != refusal.status || !refusal.ends(status) {
			continue
		}
		switch more, begins := r.beginsWith(refusal); {
		case begins && !more, around:
			return refusal, r.hasRun(refusal)
		case begins:
			continued = refusal
		case custom, status == 499:
		case isClientError(status), refusal.begun && refusal.isOwn503(status):
			hidden = refusal
		}
	}
	if continued != nil {
		return continued, true
	}
	return hidden, r.hasRun(hidden)
}

// ends reports whether a request may end with the refusal, which is answered with the status. A
// function of the application may have run the request by other means. So its answer is no
// refusal, but counts as the handler's. Exceptions: it is a 4xx, or a 503 that is the status of the
// refusal.
func (refusal *refused) ends(status int) bool {
	return refusal.ours || isClientError(status) || refusal.isOwn503(status)
}

// isOwn503 reports whether a status is 503, and that of the refusal without an error handler.
func (refusal *refused) isOwn503(status int) bool {
	return status == http.StatusServiceUnavailable && RefusalOf(refusal.cause).HTTP == status
}

// hasRun reports whether the request may have run although its answer is the refusal, which may be
// nil. Another status behind the refusal shows that something has run after it. Exception: a
// middleware that ends the context of its request sets 503 or 504 at its end, also behind the
// refusal of that request.
func (r *Recorder) hasRun(refusal *refused) bool {
	late := r.lateStatus || r.lateTimeout && (refusal == nil || !isContextEnd(refusal.cause))
	return r.ran || r.entered > 0 || late
}

// beginsWith reports whether the recorded answer begins with the body of a refusal, and whether it
// has more.
func (r *Recorder) beginsWith(refusal *refused) (more, begins bool) {
	if refusal.body == nil {
		return false, false
	}
	rest, begins := behind(r.body, refusal.body)
	return r.more || len(bytes.TrimSpace(rest)) > 0, begins
}

// behind returns what a body has behind a document, and whether the body begins with the document. A
// framework may have indented a JSON document.
func behind(body, document []byte) (rest []byte, found bool) {
	if rest, found = bytes.CutPrefix(body, document); found {
		return rest, true
	}
	var first json.RawMessage
	var given, want bytes.Buffer
	decoder := json.NewDecoder(bytes.NewReader(body))
	if decoder.Decode(&first) != nil || json.Compact(&given, first) != nil || json.Compact(&want, document) != nil {
		return nil, false
	}
	return body[decoder.InputOffset():], bytes.Equal(given.Bytes(), want.Bytes())
}

// isClientError reports whether a status is a 4xx.
func isClientError(status int) bool { return status/100 == http.StatusBadRequest/100 }

// noteReturned records the error that a handler has returned to its framework, and the status that
// the error asks for, or 0. If the error is a refusal, and nothing is answered yet, the framework
// answers with the refusal. If the error is another one, the answer is no refusal.
func (r *Recorder) noteReturned(err error, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		return
	}
	r.otherError = true
	for i := range r.refusals {
		refusal := &r.refusals[i]
		if refusal.err != nil && endsIn(err, refusal.err) && (status == 0 || status == refusal.status) {
			r.otherError = false
			if !r.hasAnswer() {
				r.returned, r.wrapped = refusal, !same(err, refusal.err)
			}
		}
	}
}

// isReturned reports whether a framework has answered, with the status, for a handler that has
// returned a refusal. An error handler of the framework may make a success of it.
func (r *Recorder) isReturned(status int) bool {
	refusal := r.returned
	switch {
	case refusal == nil, r.wrapped && status != refusal.status:
		return false
	}
	return refusal.ends(status) && (status == 0 || status >= http.StatusBadRequest)
}
