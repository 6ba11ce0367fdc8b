package httpattempt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/adapter/record"
)

// A run is one run of a handler in an Exchange.
type run struct {
	*Recorder
	x       *Exchange
	attempt *core.Attempt
	cancel  context.CancelFunc // ends the context of the request
}

// answers writes an answer with a body, unless the status has none.
func (r run) answers(status int) {
	r.WriteHeader(status)
	_, _ = r.WriteString("paid")
}

// decides decides the attempt.
func (r run) decides(d core.Decision) { r.attempt.Decide(d) }

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

// What the next request with the key gets, besides an error.
var (
	errRuns    = errors.New("the request runs")
	errReplays = errors.New("the request gets the first answer")
)

// next returns what the next request with the key gets. want is the first answer.
func next(t *testing.T, e *Endpoint[*http.Request], key string, want *httptest.ResponseRecorder) error {
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
func runOnce(t *testing.T, e *Endpoint[*http.Request], key string, handler func(run)) *httptest.ResponseRecorder {
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
		x.Run(hijackable{w}, r, func(rec *Recorder, running *http.Request) {
			left = rec
			attempt, _ := core.AttemptFromContext(running.Context())
			handler(run{rec, x, attempt, cancel})
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

// The status of the answer, the handler's decision and the way to answer decide how an
// attempt ends. The client gets the answer in any case.
func TestEndOfAttempt(t *testing.T) {
	t.Parallel()
	const outside = 0 // an outer middleware answers
	endpoint := newEndpoint(t, locktest.New(t, core.WithMaxRecord(1000)).Locker, Settings[*http.Request]{})
	for name, test := range map[string]struct {
		handler func(run)
		status  int
		next    error
	}{
		"a stored status":      {func(r run) { r.answers(201) }, 201, errReplays},
		"no body":              {func(r run) { r.answers(204) }, 204, errReplays},
		"nothing":              {func(run) {}, outside, errReplays},
		"another status":       {func(r run) { r.answers(503) }, 503, errRuns},
		"a 409":                {func(r run) { r.answers(409) }, 409, errRuns},
		"a failure's status":   {func(r run) { r.answers(500) }, 500, core.ErrInterrupted},
		"a 499":                {func(r run) { r.answers(499) }, 499, core.ErrInterrupted},
		"a gateway's failure":  {func(r run) { r.answers(502) }, 502, core.ErrInterrupted},
		"a gateway's deadline": {func(r run) { r.answers(504) }, 504, core.ErrInterrupted},
		"another status, StoreAnswer": {func(r run) {
			r.decides(core.StoreAnswer)
			r.answers(500)
		}, 500, errReplays},
		"a stored status, DropAnswer": {func(r run) {
			r.decides(core.DropAnswer)
			r.answers(201)
		}, 201, errRuns},
		"a stored status, Uncertain": {func(r run) {
			r.decides(core.Uncertain)
			r.answers(201)
		}, 201, core.ErrInterrupted},
		"another status, DropAnswer": {func(r run) {
			r.decides(core.DropAnswer)
			r.answers(500)
		}, 500, errRuns},
		"an implied status that is not stored": {func(r run) { r.x.Imply(503) }, outside, errRuns},
		"an implied 500":                       {func(r run) { r.x.Imply(500) }, outside, core.ErrInterrupted},
		"a failure":                            {func(r run) { r.x.Fail(0) }, outside, core.ErrInterrupted},
		"a failure, 500":                       {func(r run) { r.x.Fail(500) }, outside, core.ErrInterrupted},
		"a failure, 402":                       {func(r run) { r.x.Fail(402) }, outside, errRuns},
		"a failure, DropAnswer": {func(r run) {
			r.decides(core.DropAnswer)
			r.x.Fail(0)
		}, outside, errRuns},
		"a failure, StoreAnswer": {func(r run) {
			r.decides(core.StoreAnswer)
			r.x.Fail(0)
		}, outside, core.ErrUnreplayable},
		"a failure after an answer": {func(r run) {
			r.answers(201)
			r.x.Fail(500)
		}, 201, errReplays},
		"a failure after a hijack": {func(r run) {
			r.takesOver()
			r.x.Fail(500)
		}, outside, core.ErrUnreplayable},
		"a bypass": {func(r run) { r.x.Bypass() }, outside, core.ErrUnreplayable},
		"a bypass after another status": {func(r run) {
			r.answers(500)
			r.x.Bypass()
		}, 500, core.ErrUnreplayable},
		"a hijack": {func(r run) { r.takesOver() }, outside, core.ErrUnreplayable},
		"a hijack after another status": {func(r run) {
			r.answers(500)
			r.takesOver()
		}, 500, core.ErrUnreplayable},
		"a flush": {func(r run) {
			r.answers(201)
			r.Flush()
		}, 201, core.ErrUnreplayable},
		"an answer over the limit": {func(r run) {
			r.WriteHeader(201)
			_, _ = io.Copy(r, strings.NewReader(strings.Repeat("b", 1000)))
		}, 201, core.ErrUnreplayable},

		"a disconnect": {func(r run) { r.cancel() }, outside, core.ErrInterrupted},
		"a disconnect and a stored status": {func(r run) {
			r.cancel()
			r.answers(201)
		}, 201, errReplays},
		"a disconnect and another status": {func(r run) {
			r.cancel()
			r.answers(503)
		}, 503, errRuns},
		"a disconnect and a 500": {func(r run) {
			r.cancel()
			r.answers(500)
		}, 500, core.ErrInterrupted},
		"a disconnect, StoreAnswer": {func(r run) {
			r.cancel()
			r.decides(core.StoreAnswer)
		}, outside, errReplays},
		"a disconnect, DropAnswer": {func(r run) {
			r.cancel()
			r.decides(core.DropAnswer)
		}, outside, errRuns},
		"a disconnect and a failure": {func(r run) {
			r.cancel()
			r.x.Fail(402)
		}, outside, core.ErrInterrupted},
		"a disconnect and an implied status": {func(r run) {
			r.cancel()
			r.x.Imply(200)
		}, outside, errReplays},
		"a disconnect and a bypass": {func(r run) {
			r.cancel()
			r.x.Bypass()
		}, outside, core.ErrUnreplayable},
		"a disconnect and a hijack": {func(r run) {
			r.cancel()
			r.takesOver()
		}, outside, core.ErrUnreplayable},
	} {
		t.Run(name, func(t *testing.T) {
			first := runOnce(t, endpoint, name, func(r run) {
				r.Header().Set("Location", "/1")
				test.handler(r)
			})
			sent := first.Result()
			if test.status != outside && (sent.StatusCode != test.status || sent.Header.Get("Location") != "/1") {
				t.Errorf("the first answer is %d %v", sent.StatusCode, sent.Header)
			}
			if got := next(t, endpoint, name, first); !errors.Is(got, test.next) {
				t.Errorf("next: %v, want %v", got, test.next)
			}
		})
	}
}

// A handler that does not return sends nothing. Its outcome is unknown. Exception: the handler
// has decided DropAnswer, or Uncertain denies it and no status is written that is stored.
func TestAbnormalEnd(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	never := func(core.Failure) bool { return false }
	uncertain, free := newEndpoint(t, locks, Settings[*http.Request]{}), newEndpoint(t, locks, Settings[*http.Request]{Uncertain: never})
	ends := map[string]func(){
		"panic": func() { panic("crash") }, "abort": func() { panic(http.ErrAbortHandler) }, "Goexit": runtime.Goexit,
	}
	for name, test := range map[string]struct {
		handler func(run)
		next    error // by default
		freed   error // if Uncertain returns false
	}{
		"nothing":         {func(run) {}, core.ErrInterrupted, errRuns},
		"another status":  {func(r run) { r.answers(500) }, core.ErrInterrupted, errRuns},
		"a 503":           {func(r run) { r.answers(503) }, core.ErrInterrupted, errRuns},
		"a stored status": {func(r run) { r.answers(201) }, core.ErrInterrupted, core.ErrInterrupted},
		"a disconnect":    {func(r run) { r.cancel() }, core.ErrInterrupted, errRuns},
		"a bypass":        {func(r run) { r.x.Bypass() }, core.ErrInterrupted, core.ErrInterrupted},
		"a hijack":        {func(r run) { r.takesOver() }, core.ErrInterrupted, core.ErrInterrupted},
		"DropAnswer": {func(r run) {
			r.decides(core.DropAnswer)
			r.answers(201)
		}, errRuns, errRuns},
		"StoreAnswer": {func(r run) { r.decides(core.StoreAnswer) }, core.ErrInterrupted, core.ErrInterrupted},
		"Uncertain":   {func(r run) { r.decides(core.Uncertain) }, core.ErrInterrupted, core.ErrInterrupted},
	} {
		for how, end := range ends {
			for endpoint, want := range map[*Endpoint[*http.Request]]error{uncertain: test.next, free: test.freed} {
				key := fmt.Sprintf("%s, %s, freed %v", name, how, endpoint == free)
				t.Run(key, func(t *testing.T) {
					w := runOnce(t, endpoint, key, func(r run) {
						r.Header().Set("Location", "/1")
						r.Header().Del("X-Outer")
						test.handler(r)
						end()
					})
					if w.Body.Len() > 0 || w.Header().Get("Location") != "" || w.Header().Get("X-Outer") != "1" {
						t.Errorf("sent %q with %v", w.Body, w.Header())
					}
					if got := next(t, endpoint, key, nil); !errors.Is(got, want) {
						t.Errorf("next: %v, want %v", got, want)
					}
				})
			}
		}
	}
}

// If Stored panics, the outcome is unknown, even if a second call of Stored would return.
func TestStoredPanics(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	for name, panics := range map[string]bool{"the handler returns": false, "the handler panics": true} {
		calls := 0
		endpoint := newEndpoint(t, locks, Settings[*http.Request]{Stored: func(int) bool {
			if calls++; calls == 1 {
				panic("Stored")
			}
			return false
		}})
		runOnce(t, endpoint, name, func(r run) {
			r.answers(500)
			if panics {
				panic("crash")
			}
		})
		if got := next(t, endpoint, name, nil); !errors.Is(got, core.ErrInterrupted) {
			t.Errorf("%s: next: %v", name, got)
		}
	}
}

// A writer counts its writes.
type countingWriter struct {
	*httptest.ResponseRecorder
	writes int
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.writes++
	return w.ResponseRecorder.Write(p)
}

// An answer without a body is sent without a Write, which outer middlewares may treat as
// the begin of a body.
func TestNoWriteWithoutBody(t *testing.T) {
	t.Parallel()
	first, replayed := &countingWriter{httptest.NewRecorder(), 0}, &countingWriter{httptest.NewRecorder(), 0}
	rec := newRecorder(first, record.Filter{}, plenty)
	rec.WriteHeader(http.StatusNoContent)
	rec.close()
	answer, _ := rec.result(0)
	rec.send()
	(&Exchange{answer: answer}).Replay(replayed)
	for _, w := range []*countingWriter{first, replayed} {
		if w.Code != http.StatusNoContent || w.writes != 0 {
			t.Errorf("%d with %d writes", w.Code, w.writes)
		}
	}
}
