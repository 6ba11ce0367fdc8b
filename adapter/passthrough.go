package adapter

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

// passThrough sends the recorded part of the answer, and makes later writes go to the
// client at once. Such an answer cannot be replayed. This happens to an answer that is sent
// in pieces, to a connection that is taken over, and to an answer that is longer than a
// record may be. The status is set.
func (r *Recorder) passThrough() {
	if r.passedThrough {
		return
	}
	r.passedThrough = true
	r.deliver()
	if !r.rejected && (r.entered == 0 || len(r.body) > maxRefusal) {
		r.body, r.more = nil, true // it is no refusal, so nothing compares it
	}
}

// IsSent reports whether the answer is sent at once instead of recorded.
func (r *Recorder) IsSent() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passedThrough
}

// FlushError sends the recorded part of the answer. Later writes are sent at once.
func (r *Recorder) FlushError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !canFlush(r.outer) {
		return http.ErrNotSupported
	}
	if err := r.admit(0); err != nil {
		return err
	}
	r.passThrough()
	return http.NewResponseController(r.outer).Flush()
}

// Flush is FlushError for callers that use http.Flusher.
func (r *Recorder) Flush() { _ = r.FlushError() }

// Hijack gives the connection to the caller, which answers on it.
func (r *Recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, errReturned
	}
	if _, can := unwrapTo[http.Hijacker](r.outer); !can {
		return nil, nil, http.ErrNotSupported
	}
	if r.status != 0 {
		r.passThrough()
	}
	conn, rw, err := http.NewResponseController(r.outer).Hijack()
	if err == nil {
		r.passedThrough, r.hijacked = true, true
	}
	return conn, rw, err
}

// Push starts a server push, which is no part of the answer.
func (r *Recorder) Push(target string, opts *http.PushOptions) error {
	if pusher, can := unwrapTo[http.Pusher](r.outer); can {
		return pusher.Push(target, opts)
	}
	return http.ErrNotSupported
}

// SetReadDeadline sets the read deadline of the connection: see http.ResponseController.
// This method and the next two do not wait for a write.
func (r *Recorder) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(r.outer).SetReadDeadline(t)
}

// SetWriteDeadline sets the write deadline of the connection.
func (r *Recorder) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(r.outer).SetWriteDeadline(t)
}

// EnableFullDuplex lets the handler read the body after it has begun to answer.
func (r *Recorder) EnableFullDuplex() error {
	return http.NewResponseController(r.outer).EnableFullDuplex()
}

// canFlush reports whether a ResponseController can flush a writer.
func canFlush(w http.ResponseWriter) bool {
	_, flusher := unwrapTo[http.Flusher](w)
	_, controlled := unwrapTo[interface{ FlushError() error }](w)
	return flusher || controlled
}
