package adapter

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// An error answer counts as any other one if the whole body was read: up to a limit, or up to a
// mistake in it.
func TestBodyThatBreaksOff(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for name, test := range map[string]struct {
		read error
		gone bool // the client
		want error
		with int // the status of the answer
	}{
		"nothing":                    {io.EOF, false, errReplays, 400},
		"an end, and a redirect":     {io.ErrUnexpectedEOF, false, core.ErrOutcomeUnknown, 303},
		"a whole body, redirected":   {io.EOF, false, errReplays, 303},
		"a connection that ends":     {io.ErrUnexpectedEOF, false, core.ErrOutcomeUnknown, 400},
		"a connection that is reset": {&net.OpError{Op: "read", Err: errors.New("reset")}, false, core.ErrOutcomeUnknown, 400},
		"a stream that is reset":     {errors.New("stream error"), true, core.ErrOutcomeUnknown, 400},
		"an end before its length":   {errors.New("only wrote 3 bytes"), false, core.ErrOutcomeUnknown, 400},
		"a limit of net/http":        {&http.MaxBytesError{Limit: 1}, false, errReplays, 400},
		"a limit of a middleware":    {errors.New("413"), false, errReplays, 400},
		"malformed content":          {gzip.ErrChecksum, false, errReplays, 400},
		"a read after Close":         {http.ErrBodyReadAfterClose, false, errReplays, 400},
	} {
		t.Run(name, func(t *testing.T) {
			own := func(*http.Request) ([]byte, error) { return nil, nil }
			endpoint := newEndpoint(t, locks, core.WithFingerprint(own))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := payment(t, name, "").WithContext(ctx)
			r.Body, r.ContentLength = io.NopCloser(iotest.ErrReader(test.read)), -1
			if strings.HasPrefix(name, "an end") {
				r.ContentLength = 1000
			}
			x, err := begin(endpoint, r)
			if err != nil {
				t.Fatal(err)
			}
			first := hijackable{httptest.NewRecorder()}
			_ = x.Run(first, r, func(rec *Recorder, running *http.Request) {
				_, _ = io.ReadAll(running.Body)
				if test.gone {
					cancel()
				}
				rec.WriteHeader(test.with)
			})
			if got := next(t, endpoint, name, first.ResponseRecorder); !errors.Is(got, test.want) {
				t.Errorf("next: %v, want %v", got, test.want)
			}
		})
	}
}
