package httpattempt

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

// pass makes the answer go straight out, with what was recorded of it before.
// From then on it is the client's, and cannot be replayed. That is so for what
// is sent in pieces, for a connection that is taken over, and for an answer that
// is longer than a record may be.
func (r *Recorder) pass() {
	if r.passing {
		return
	}
	r.passing = true
	if r.status != 0 {
		r.deliver()
	}
}

// Passing reports whether the answer goes straight out.
func (r *Recorder) Passing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passing
}

// FlushError sends what is recorded, and from then on what is written.
func (r *Recorder) FlushError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !canFlush(r.outer) {
		return http.ErrNotSupported
	}
	if err := r.admit(0); err != nil {
		return err
	}
	r.pass()
	return http.NewResponseController(r.outer).Flush()
}

// Flush is FlushError for those who look for an http.Flusher.
func (r *Recorder) Flush() { _ = r.FlushError() }

// Hijack hands the connection over, and with it the answer.
func (r *Recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, errReturned
	}
	if _, can := behind[http.Hijacker](r.outer); !can {
		return nil, nil, http.ErrNotSupported
	}
	if r.status != 0 {
		r.pass()
	}
	conn, rw, err := http.NewResponseController(r.outer).Hijack()
	if err == nil {
		r.passing, r.hijacked = true, true
	}
	return conn, rw, err
}

// Push asks for a push, which is no part of the answer.
func (r *Recorder) Push(target string, opts *http.PushOptions) error {
	if pusher, can := behind[http.Pusher](r.outer); can {
		return pusher.Push(target, opts)
	}
	return http.ErrNotSupported
}

// SetReadDeadline sets that of the connection: see http.ResponseController. It
// and its siblings wait for no write.
func (r *Recorder) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(r.outer).SetReadDeadline(t)
}

// SetWriteDeadline sets that of the connection.
func (r *Recorder) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(r.outer).SetWriteDeadline(t)
}

// EnableFullDuplex lets the handler read the body after it has begun to answer.
func (r *Recorder) EnableFullDuplex() error {
	return http.NewResponseController(r.outer).EnableFullDuplex()
}

// canFlush reports whether a ResponseController can flush a writer.
func canFlush(w http.ResponseWriter) bool {
	_, flusher := behind[http.Flusher](w)
	_, controlled := behind[interface{ FlushError() error }](w)
	return flusher || controlled
}

// behind returns the first of a writer, and those that it wraps, which is a T.
func behind[T any](w http.ResponseWriter) (found T, is bool) {
	for w != nil {
		if found, is = w.(T); is {
			return found, true
		}
		wrapper, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			break
		}
		w = wrapper.Unwrap()
	}
	return found, false
}
