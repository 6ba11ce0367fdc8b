package httpattempt

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/reqlock/reqlock/internal/adapter/record"
)

// A Recorder is the ResponseWriter of a handler whose answer is to be kept
// before it is sent. To the handler it is like that of net/http.
//
// It has a header of its own, so that of the writer behind it stays as it is
// until the answer is sent. There is no way past it to that writer: it has no
// Unwrap. What cannot be recorded makes the answer go straight out: see pass.
//
// A call after the handler has returned does nothing, and is an error where
// there can be one; also from another goroutine.
type Recorder struct {
	outer  http.ResponseWriter
	filter record.Filter
	limit  int         // of a record, in bytes
	before http.Header // that of outer, as it was
	header http.Header // the handler's

	mu       sync.Mutex
	status   int           // 0: none yet
	sent     http.Header   // the header as it was when the status was written
	kept     record.Answer // what is replayed, but for its body
	room     int           // how many bytes of body the record has room for
	declared int64         // the Content-Length of sent, or -1
	offered  int64         // how many bytes of body were to be written
	body     []byte
	passing  bool // what is written goes to outer
	hijacked bool
	closed   bool // the handler has returned
}

func newRecorder(outer http.ResponseWriter, filter record.Filter, limit int) *Recorder {
	before := outer.Header().Clone()
	return &Recorder{outer: outer, filter: filter, limit: limit, before: before, header: before.Clone()}
}

// errReturned is what a write gets that comes too late.
var errReturned = errors.New("reqlock: write after the handler has returned")

// Header returns the handler's header.
func (r *Recorder) Header() http.Header { return r.header }

// WriteHeader sets the status, once. One that is informational is sent at once,
// and is no part of the answer.
func (r *Recorder) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status)) // as net/http does
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed || r.hijacked || r.status != 0:
	case status < http.StatusOK && status != http.StatusSwitchingProtocols:
		apply(r.outer.Header(), r.before, r.header)
		r.outer.WriteHeader(status)
		apply(r.outer.Header(), r.header, r.before)
	default:
		r.begin(status)
	}
}

// begin sets the status, and with it the header of the answer.
func (r *Recorder) begin(status int) {
	r.status, r.sent, r.declared = status, r.header.Clone(), -1
	if length, err := strconv.ParseInt(r.sent.Get("Content-Length"), 10, 64); err == nil && length >= 0 {
		r.declared = length
	}
	r.kept = record.Answer{Status: status, Header: changed(r.filter, r.before, r.sent)}
	r.room = r.limit - len(record.Encode(nil, r.kept))
	if status == http.StatusSwitchingProtocols {
		r.pass()
	}
}

// Write writes a part of the body, after the status, which is 200 if none is
// written yet.
func (r *Recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.admit(len(p)); err != nil {
		return 0, err
	}
	if !r.passing && len(p) > r.room-len(r.body) {
		r.pass()
	}
	if r.passing {
		return r.outer.Write(p)
	}
	r.body = append(r.body, p...)
	return len(p), nil
}

// admit makes ready for so many bytes of body. Its errors are net/http's.
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
	if r.passing || n == 0 {
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

// ReadFrom writes what it reads, all through Write.
func (r *Recorder) ReadFrom(src io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{r}, src)
}

// close ends what the handler can write.
func (r *Recorder) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// answered reports whether the handler has begun an answer.
func (r *Recorder) answered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status != 0 || r.hijacked
}

// hasBody reports whether an answer of the status may have a body.
func hasBody(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}
