// Package httpbody reads the bodies of requests of net/http for keys and fingerprints.
//
// A body that is read is replaced by one that yields the same bytes to the handler. An ambiguous
// request, in which a handler could read another value than the lock, is refused.
package httpbody

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/reqlock/reqlock/internal/keytext"
	"github.com/reqlock/reqlock/internal/kind"
)

// maxTrusted is the most bytes that are allocated because of a Content-Length, before the
// client has sent them.
const maxTrusted = 64 << 10

// Read returns the complete body of a request, and replaces it by a body that yields
// the same bytes. The returned bytes are shared: the caller must not change them.
//
// A body over the limit, or over that of http.MaxBytesReader, is kind.ErrBodyTooLarge. An
// incomplete body is kind.ErrInvalidKey. If the body was read before, Read returns no
// bytes: see IsConsumed. After an error, too, the new body reads as the first one would have.
func Read(r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	buffered, ok := r.Body.(*bufferedBody)
	if !ok || !buffered.isComplete() {
		if r.ContentLength > limit {
			// Nothing is read, so a client that expects 100 (Continue)
			// does not send the body.
			return nil, &bodyTooLargeError{limit: limit}
		}
		buffered = &bufferedBody{source: r.Body}
		buffered.readAhead(limit, r.ContentLength)
		r.Body = buffered
	}
	switch {
	case int64(len(buffered.bytes)) > limit:
		return nil, &bodyTooLargeError{limit: limit}
	case errors.Is(buffered.err, io.EOF), len(buffered.bytes) == 0 && isClosed(buffered.err):
		return buffered.bytes, nil
	default:
		return nil, bodyError(buffered.err)
	}
}

// ReadFor is Read for a key. reader is the key as the program writes it.
func ReadFor(r *http.Request, limit int64, reader string) ([]byte, error) {
	body, err := Read(r, limit)
	if err == nil && len(body) == 0 && IsConsumed(r) {
		return nil, Consumed(reader)
	}
	var tooLarge *bodyTooLargeError
	if errors.As(err, &tooLarge) && tooLarge.option == "" {
		tooLarge.option = "core.WithMaxBody"
	}
	return body, err
}

// TooLarge returns the kind.ErrBodyTooLarge of a body over a limit in bytes.
func TooLarge(limit int64) error { return &bodyTooLargeError{limit: limit, option: "core.WithMaxBody"} }

// HasUnread reports whether the server may still have to read a part of a request's body.
func HasUnread(r *http.Request) bool {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 || r.PostForm != nil || r.MultipartForm != nil {
		return false
	}
	buffered, ok := r.Body.(*bufferedBody)
	return !ok || !buffered.isComplete()
}

// A bufferedBody replaces a body whose beginning has been read. It yields the same bytes as
// that body, and keeps them for the next key.
type bufferedBody struct {
	source io.ReadCloser
	bytes  []byte      // the bytes that were read ahead
	err    error       // the end of reading ahead: io.EOF, an error, or nil if more bytes follow
	off    int         // how many of the bytes the handler has read
	ended  atomic.Bool // the source was read to its end
	closed atomic.Bool
}

// readAhead reads ahead until the end, an error, or one byte over the limit.
func (b *bufferedBody) readAhead(limit, expected int64) {
	var ahead bytes.Buffer
	if expected > 0 {
		ahead.Grow(int(min(expected, maxTrusted)) + bytes.MinRead)
	}
	_, err := ahead.ReadFrom(io.LimitReader(b.source, max(limit, limit+1))) // limit+1 may overflow
	if err == nil && int64(ahead.Len()) <= limit {
		err = io.EOF
		b.ended.Store(true)
	}
	b.bytes, b.err = ahead.Bytes(), err
}

// isComplete reports whether no bytes follow those that were read ahead.
func (b *bufferedBody) isComplete() bool { return b.err != nil }

// IsRead reports whether Read has read a body to its end.
func IsRead(body io.Reader) bool {
	buffered, ok := body.(*bufferedBody)
	return ok && errors.Is(buffered.err, io.EOF)
}

// Read returns the bytes that were read ahead, and then reads from the source.
func (b *bufferedBody) Read(p []byte) (int, error) {
	switch {
	case b.closed.Load():
		return 0, http.ErrBodyReadAfterClose
	case b.off < len(b.bytes):
		n := copy(p, b.bytes[b.off:])
		b.off += n
		return n, nil
	case b.err != nil:
		return 0, b.err
	}
	n, err := b.source.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended.Store(true)
	}
	return n, err
}

// Close closes the source if the source was read to its end. Otherwise the server closes
// its own body after the request. If another body that wraps the server's were closed
// early, the server would parse the rest of it as the connection's next request.
func (b *bufferedBody) Close() error {
	b.closed.Store(true)
	if !b.ended.Load() {
		return nil
	}
	return b.source.Close()
}

// bodyError converts an error of reading a body.
func bodyError(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return &bodyTooLargeError{limit: tooLarge.Limit, option: "http.MaxBytesReader", cause: err}
	}
	return keytext.Invalid("the body breaks off: %w", err)
}

// A bodyTooLargeError is a kind.ErrBodyTooLarge with its limit.
type bodyTooLargeError struct {
	limit  int64
	option string // what sets the limit; "": the caller's description names it
	cause  error  // the error of the body's reader, if any
}

// Error names the limit.
func (e *bodyTooLargeError) Error() string {
	text := fmt.Sprintf("%v: over %d bytes", kind.ErrBodyTooLarge, e.limit)
	if e.option != "" {
		text += ": see " + e.option
	}
	return text
}

// Unwrap returns kind.ErrBodyTooLarge, and the cause if there is one.
func (e *bodyTooLargeError) Unwrap() []error {
	if e.cause == nil {
		return []error{kind.ErrBodyTooLarge}
	}
	return []error{kind.ErrBodyTooLarge, e.cause}
}

// MaxBody returns the limit in bytes, for core.RefusalOf.
func (e *bodyTooLargeError) MaxBody() int64 { return e.limit }
