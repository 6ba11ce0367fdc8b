package adapter

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/reqlock/reqlock/internal/answer"
)

// A Recorder is the ResponseWriter of a handler whose answer is stored before it is sent.
// For the handler it behaves as the one of net/http.
//
// It has its own header: the header of the outer writer is unchanged until the answer is
// sent. It has no Unwrap, so the handler cannot reach the outer writer. An answer that is
// flushed, takes over the connection or is longer than core.WithMaxAnswer is sent at once.
//
// A call after the handler has returned does nothing. It returns an error where the method
// has one. This also holds for calls from other goroutines.
type Recorder struct {
	outer  http.ResponseWriter
	filter answer.Filter
	limit  int         // of a record, in bytes
	held   bool        // the framework keeps the answer until the handler has returned
	before http.Header // the header of outer before the handler
	header http.Header // the handler's

	inside                      // its mutex guards the fields from here on
	status        int           // 0: not written yet
	sent          http.Header   // the header when the status was written
	kept          answer.Answer // the answer that is stored, without its body
	room          int           // how many bytes of body fit into the record
	declared      int64         // the Content-Length of sent, or -1
	offered       int64         // how many bytes of body the handler has written
	body          []byte
	passedThrough bool // writes go to outer
	hijacked      bool
	more          bool // body lacks bytes that were sent at once
	closed        bool // the handler has returned
	lateStatus    bool // another status came after the answer had begun, neither 503 nor 504
	lateTimeout   bool // 503 or 504 came after the answer had begun

	// What the handler has returned to its framework: see noteReturned.
	returned   *refused // or nil
	wrapped    bool     // returned, in another error
	otherError bool
}

func newRecorder(outer http.ResponseWriter, filter answer.Filter, limit int) *Recorder {
	before := outer.Header().Clone()
	r := &Recorder{outer: outer, filter: filter, limit: limit, before: before, header: before.Clone()}
	r.recorder = r
	return r
}

// errReturned is the error of a write after the handler has returned.
var errReturned = errors.New("reqlock: write after the handler has returned")

// Header returns the handler's header.
func (r *Recorder) Header() http.Header { return r.header }

// WriteHeader sets the status, once. An informational status is sent at once, and is no
// part of the answer.
func (r *Recorder) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status)) // as net/http does
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed || r.hijacked:
	case r.status != 0:
		r.noteLate(status)
	case status < http.StatusOK && status != http.StatusSwitchingProtocols:
		apply(r.outer.Header(), r.before, r.header)
		r.outer.WriteHeader(status)
		apply(r.outer.Header(), r.header, r.before)
	default:
		r.begin(status)
	}
}

// NoteLate records a status that a handler has set on a writer of the framework after the answer
// had begun.
func (r *Recorder) NoteLate(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLate(status)
}

// noteLate is NoteLate for a caller that holds mu.
func (r *Recorder) noteLate(status int) {
	switch {
	case status < http.StatusOK, status == r.status:
	case status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		r.lateTimeout = true
	default:
		r.lateStatus = true
	}
}

// begin sets the status, and stores a copy of the header for the answer.
func (r *Recorder) begin(status int) {
	r.status, r.sent, r.declared = status, r.header.Clone(), -1
	if length, err := strconv.ParseInt(r.sent.Get("Content-Length"), 10, 64); err == nil && length >= 0 {
		r.declared = length
	}
	r.kept = answer.Answer{Status: status, Header: changed(r.filter, r.before, r.sent)}
	r.room = r.limit - answer.Len(r.kept)
}

// Write writes a part of the body. If no status is written yet, Write sets 200 first.
func (r *Recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.admit(len(p)); err != nil {
		return 0, err
	}
	if !r.passedThrough && len(p) > r.room-len(r.body) {
		r.passThrough()
	}
	if !r.passedThrough {
		r.body = append(r.body, p...)
		return len(p), nil
	}
	if r.more = r.more || len(p) > maxRefusal-len(r.body); !r.more {
		r.body = append(r.body, p...) // may be that of a refusal
	}
	return r.outer.Write(p)
}

// admit checks that n bytes of body may be written. It sets the status 200 if there is
// none. It returns the errors of net/http.
func (r *Recorder) admit(n int) error {
	if r.closed {
		return errReturned
	}
	if r.hijacked {
		return http.ErrHijacked
	}
	if r.status == 0 {
		r.begin(http.StatusOK)
	}
	if r.passedThrough || n == 0 {
		return nil
	}
	if !hasBody(r.status) {
		return http.ErrBodyNotAllowed
	}
	r.offered += int64(n)
	if r.declared >= 0 && r.offered > r.declared {
		return http.ErrContentLength
	}
	return nil
}

// WriteString is Write.
func (r *Recorder) WriteString(s string) (int, error) { return r.Write([]byte(s)) }

// ReadFrom copies from src by Write.
func (r *Recorder) ReadFrom(src io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{r}, src)
}

// close makes later writes fail.
func (r *Recorder) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// answered reports whether the handler has begun to answer.
func (r *Recorder) answered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasAnswer()
}

// hasAnswer is answered for a caller that holds mu. It is false for nil.
func (r *Recorder) hasAnswer() bool { return r != nil && (r.status != 0 || r.hijacked) }

// isHeld reports whether the framework keeps the answer. It is false for nil.
func (r *Recorder) isHeld() bool { return r != nil && r.held }

// isClosed reports whether the handler has returned, for a caller that holds mu. It is false for nil.
func (r *Recorder) isClosed() bool { return r != nil && r.closed }

// hasBody reports whether an answer of the status may have a body.
func hasBody(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}
