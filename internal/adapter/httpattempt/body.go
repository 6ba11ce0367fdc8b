package httpattempt

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
)

// A body is the body of a request that its handler reads. It notes whether the body could
// not be read to its end. An error answer says nothing then: a retry has the whole body.
type body struct {
	io.ReadCloser
	broken atomic.Pointer[error]
}

// watch returns the body that the handler gets. A body that has been read already cannot
// break off, so it is returned as it is.
func (b *body) watch(source io.ReadCloser) io.ReadCloser {
	if source == nil || source == http.NoBody || httpkey.IsRead(source) {
		return source
	}
	b.ReadCloser = source
	return b
}

// Read reads from the request's body.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !isEndOfBody(err) {
		b.broken.CompareAndSwap(nil, &err)
	}
	return n, err
}

// isEndOfBody reports whether an error is that of a whole body, or of one over a limit.
func isEndOfBody(err error) bool {
	var tooLarge *http.MaxBytesError
	return errors.Is(err, io.EOF) || errors.As(err, &tooLarge) || errors.Is(err, core.ErrBodyTooLarge)
}

// err returns the first error that broke the body off, or nil.
func (b *body) err() error {
	if err := b.broken.Load(); err != nil {
		return *err
	}
	return nil
}
