package adapter

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/reqlock/reqlock/core"
)

// A run is one run of a handler in an Exchange.
type run struct {
	*Recorder
	x       *Exchange
	attempt *core.Attempt
	running *http.Request
	cancel  context.CancelFunc // ends the context of the request
}

// answers writes an answer with a body, unless the status has none.
func (r run) answers(status int) {
	r.WriteHeader(status)
	_, _ = r.WriteString("paid")
}

// decides decides the attempt.
func (r run) decides(d core.Ending) { r.attempt.Decide(d) }

// takesOver hijacks the connection.
func (r run) takesOver() {
	conn, _, err := r.Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.Close()
}

// A hijackable is an outer writer with a connection.
type hijackable struct{ *httptest.ResponseRecorder }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, other := net.Pipe()
	_ = other.Close()
	return conn, bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn)), nil
}

// next returns what the next request with the key gets. want is the first answer.
func next(t *testing.T, e *IdempotentHTTP[*http.Request], key string, want *httptest.ResponseRecorder) error {
	t.Helper()
	x, err := begin(e, payment(t, key, ""))
	if err != nil {
		return err
	}
	if !x.Replayed() {
		if err := x.attempt.Abort(t.Context()); err != nil {
			t.Error(err)
		}
		return errRuns
	}
	w := httptest.NewRecorder()
	x.Replay(w)
	if w.Code != want.Code || w.Body.String() != want.Body.String() || w.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("the copy has %d %q, the first answer was %d %q", w.Code, w.Body, want.Code, want.Body)
	}
	return errReplays
}

// runOnce runs a handler in an Exchange. It returns the answer that the client got.
func runOnce(t *testing.T, e *IdempotentHTTP[*http.Request], key string, handler func(run)) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := payment(t, key, "").WithContext(ctx)
	x, err := begin(e, r)
	if err != nil || x.Replayed() {
		t.Fatalf("the first request: replayed %v, %v", err == nil, err)
	}
	w := httptest.NewRecorder()
	w.Header().Set("X-Outer", "1")
	var left *Recorder
	done := make(chan struct{})
	go func() { // the handler may end its goroutine
		defer close(done)
		defer func() { _ = recover() }()
		_ = x.Run(hijackable{w}, r, func(rec *Recorder, running *http.Request) {
			left = rec
			attempt, _ := core.AttemptFromContext(running.Context())
			handler(run{rec, x, attempt, running, cancel})
		})
	}()
	<-done
	if left == nil {
		t.Fatal("the handler has not run")
	}
	if _, err := left.Write([]byte("late")); !errors.Is(err, errReturned) {
		t.Errorf("a write after the end: %v", err)
	}
	return w
}
