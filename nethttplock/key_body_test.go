package nethttplock_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/nethttplock"
)

// A source is a body that counts its calls.
type source struct {
	io.Reader
	read   int
	closed int
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.read += n
	return n, err
}

func (s *source) Close() error {
	s.closed++
	return nil
}

// request returns a request with a body of unknown length.
func request(ctx context.Context, body io.Reader) (*http.Request, *source) {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil)
	s := &source{Reader: body}
	r.Body, r.ContentLength = s, -1
	return r, s
}

// readAll reads a body as a handler does, in small and uneven pieces.
func readAll(t *testing.T, r *http.Request) string {
	t.Helper()
	body, err := io.ReadAll(iotest.HalfReader(r.Body))
	if err != nil {
		t.Errorf("the handler's body: %v", err)
	}
	return string(body)
}

// within returns a key under a limit of the body, as in a middleware with WithMaxBody.
func within(limit int64, key nethttplock.Key) nethttplock.Key {
	node := bridge.NodeOf(key).(bridge.Node[*http.Request])
	read := node.Read
	node.Read = func(_ bridge.Env, r *http.Request) (bridge.RequestKey, error) {
		return read(bridge.Env{MaxBody: limit}, r)
	}
	return bridge.KeyOf(key, node).(nethttplock.Key)
}

func TestBodyIsRestored(t *testing.T) {
	t.Parallel()
	id, n := within(100, nethttplock.JSONField("id")), within(50, nethttplock.JSONField("n"))
	const text = `{"id":"a","n":7}`
	r, s := request(t.Context(), strings.NewReader(text))

	key, err := id.Read(r)
	check(t, key.Raw(), err, "a", nil)
	restored := r.Body
	key, err = n.Read(r)
	check(t, key.Raw(), err, "7", nil)
	if r.Body != restored || s.read != len(text) {
		t.Error("the second key has not used what the first one read")
	}
	if got := readAll(t, r); got != text || r.ContentLength != -1 {
		t.Errorf("the handler reads %q, of length %d", got, r.ContentLength)
	}
	key, err = id.Read(r)
	check(t, key.Raw(), err, "a", nil) // also after a middleware has read the body
	if err := r.Body.Close(); err != nil || s.closed != 1 {
		t.Errorf("Close: %v, reached the source %d times", err, s.closed)
	}
	if _, err := r.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("Read after Close: %v", err)
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	const text = `{"id":"a"}`
	for name, test := range map[string]struct {
		limit    int64
		length   int64
		wantErr  error
		wantRead int
	}{
		"far below":         {1 << 62, -1, nil, len(text)},
		"no limit":          {1<<63 - 1, -1, nil, len(text)},
		"at the limit":      {int64(len(text)), -1, nil, len(text)},
		"one over":          {int64(len(text)) - 1, -1, core.ErrBodyTooLarge, len(text)},
		"far over":          {3, -1, core.ErrBodyTooLarge, 4},
		"announced":         {int64(len(text)), int64(len(text)), nil, len(text)},
		"announced as over": {int64(len(text)) - 1, int64(len(text)), core.ErrBodyTooLarge, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := request(t.Context(), iotest.OneByteReader(strings.NewReader(text)))
			r.ContentLength = test.length
			want := "a"
			if test.wantErr != nil {
				want = ""
			}
			key, err := within(test.limit, nethttplock.JSONField("id")).Read(r)
			check(t, key.Raw(), err, want, test.wantErr)
			if s.read != test.wantRead {
				t.Errorf("%d bytes were read, not %d", s.read, test.wantRead)
			}
			if got := readAll(t, r); got != text {
				t.Errorf("the handler reads %q", got)
			}
		})
	}
}

// A second key with a higher limit reads a body that the first one refused.
func TestSecondLimitIsHigher(t *testing.T) {
	t.Parallel()
	const text = `{"id":"a"}`
	r, s := request(t.Context(), strings.NewReader(text))
	key, err := within(4, nethttplock.JSONField("id")).Read(r)
	check(t, key.Raw(), err, "", core.ErrBodyTooLarge)
	key, err = within(10, nethttplock.JSONField("id")).Read(r)
	check(t, key.Raw(), err, "a", nil)
	key, err = within(4, nethttplock.JSONField("id")).Read(r)
	check(t, key.Raw(), err, "", core.ErrBodyTooLarge)
	if got := readAll(t, r); got != text {
		t.Errorf("the handler reads %q", got)
	}
	if err := r.Body.Close(); err != nil || s.closed != 1 {
		t.Errorf("Close: %v, reached the source %d times", err, s.closed)
	}
}

func TestReadErrorOfBodyIsWrapped(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		broken, wantErr error
	}{
		"breaks off":        {io.ErrUnexpectedEOF, core.ErrInvalidKey},
		"MaxBytesReader":    {&http.MaxBytesError{Limit: 4}, core.ErrBodyTooLarge},
		"client went":       {context.Canceled, core.ErrInvalidKey},
		"unwrapped further": {errors.New("x"), core.ErrInvalidKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := request(t.Context(), io.MultiReader(strings.NewReader(`{"id`), iotest.ErrReader(test.broken)))
			for range 2 { // a second key gets the same error
				key, err := within(100, nethttplock.JSONField("id")).Read(r)
				check(t, key.Raw(), err, "", test.wantErr)
				if !errors.Is(err, test.broken) {
					t.Errorf("%v does not wrap its cause", err)
				}
			}
			// So does a handler, if the request is not refused.
			body, err := io.ReadAll(r.Body)
			if string(body) != `{"id` || !errors.Is(err, test.broken) {
				t.Errorf("the handler reads %q, %v", body, err)
			}
		})
	}
}

func TestRequestWithoutBodyHasNoKey(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.ReadCloser{"nil": nil, "NoBody": http.NoBody} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			r.Body = body
			key, err := within(100, nethttplock.JSONField("id")).Read(r)
			check(t, key.Raw(), err, "", core.ErrNoKey)
			if r.Body != body {
				t.Error("the body was replaced")
			}
		})
	}
}
