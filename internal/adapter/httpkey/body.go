package httpkey

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/keypart"
)

// maxTrusted is how many bytes are set aside because a client says that it will
// send them.
const maxTrusted = 64 << 10

// ReadBody returns the body of a request, whole, and leaves one in its place
// that reads the same. The bytes are shared: nobody may change them.
//
// A body over the limit, here or in http.MaxBytesReader, is
// core.ErrBodyTooLarge; one that breaks off is core.ErrInvalidKey. Also then
// the body in its place reads as the first one would have.
func ReadBody(r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	kept, ok := r.Body.(*keptBody)
	if !ok || !kept.whole() {
		if r.ContentLength > limit {
			// Not a byte is read, so a client that expects 100 (Continue)
			// does not send them.
			return nil, errOverLimit
		}
		kept = &keptBody{source: r.Body}
		kept.keep(limit, r.ContentLength)
		r.Body = kept
	}
	switch {
	case int64(len(kept.bytes)) > limit:
		return nil, errOverLimit
	case errors.Is(kept.err, io.EOF):
		return kept.bytes, nil
	default:
		return nil, bodyFault(kept.err)
	}
}

// A keptBody stands for a body whose beginning has been read. It reads like the
// body that it stands for, and remembers the bytes for the next key function.
type keptBody struct {
	source io.ReadCloser
	bytes  []byte      // what was read ahead
	err    error       // how reading ahead ended: io.EOF, or nil if more follows
	off    int         // how much of bytes was given to the reader
	ended  atomic.Bool // the source was read to its end
	closed atomic.Bool
}

// keep reads ahead until the end, an error, or one byte over the limit.
func (b *keptBody) keep(limit, expected int64) {
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

// whole reports whether what was read ahead is all there is.
func (b *keptBody) whole() bool { return b.err != nil }

// Read gives what was read ahead, and then goes on as the source would.
func (b *keptBody) Read(p []byte) (int, error) {
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

// Close closes the source if it was read to its end. Else that is left to the
// server, which closes its own body after each request: closed early by anybody
// else, behind a body that is not the server's, the rest of it would be taken
// for the connection's next request.
func (b *keptBody) Close() error {
	b.closed.Store(true)
	if !b.ended.Load() {
		return nil
	}
	return b.source.Close()
}

// bodyFault words an error of reading a body.
func bodyFault(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return fmt.Errorf("%w: %w", core.ErrBodyTooLarge, err)
	}
	return keypart.Invalid("the body breaks off: %w", err)
}

var errOverLimit = fmt.Errorf("%w: over the limit of its reader", core.ErrBodyTooLarge)
