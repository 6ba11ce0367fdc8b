package adapter

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/reqlock/reqlock/internal/httpbody"
)

// A body is the body of a request that its handler reads. It notes whether the body broke
// off. An error answer says nothing then: a retry may have the whole body.
type body struct {
	io.ReadCloser
	request *http.Request // as it came
	read    atomic.Int64  // bytes
	broken  atomic.Pointer[error]
}

// watch returns the body that the handler of a request gets. A body that has been read already
// cannot break off, so it is returned as it is.
func (b *body) watch(r *http.Request) io.ReadCloser {
	if r.Body == nil || r.Body == http.NoBody || httpbody.IsRead(r.Body) {
		return r.Body
	}
	b.ReadCloser, b.request = r.Body, r
	return b
}

// Read reads from the request's body.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		b.broken.CompareAndSwap(nil, &err)
	}
	return n, err
}

// err returns the error by which the body broke off, or nil. Other errors are those of a whole
// body: it is over a limit, or its content is malformed. On HTTP/2 a body that breaks off has
// an error without a type, but ends the request or is shorter than its Content-Length.
func (b *body) err() error {
	failed := b.broken.Load()
	if failed == nil {
		return nil
	}
	var network net.Error
	var limit *http.MaxBytesError
	switch {
	case errors.As(*failed, &limit):
		return nil
	case errors.Is(*failed, io.ErrUnexpectedEOF), errors.As(*failed, &network), b.request.Context().Err() != nil,
		b.read.Load() < b.request.ContentLength:
		return *failed
	}
	return nil
}
