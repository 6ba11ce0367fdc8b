package conformance

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
)

// waitingCases send requests for one key at the same time.
func waitingCases() []testCase {
	return []testCase{
		{"one of nine runs, and eight are refused with Retry-After", everywhere, oneOfNine},
		{"a waiter gets the lease by a hand-off", everywhere, handOver},
		{"a waiter gets the lock of another process", everywhere, waitForAnother},
		{"a wait beyond the ReadTimeout of the server is reported once, if the handler has the body to read", writeLimits, waitBeyondReadTimeout},
	}
}

// The running request ends after the eight others were refused.
func oneOfNine(e *environment) {
	s := e.serve(route{
		locks: []lock{{keys: []key{byHeader}}},
		handler: func(c call) {
			e.events.await(e.T, core.Refused, 8)
			c.Reply("done")
		},
	})
	busy := e.rowOf(refused(core.ErrBusy, time.Second))
	var ran, refusedCount atomic.Int32
	var sent sync.WaitGroup
	for range 9 {
		sent.Go(func() {
			switch got := s.send(e.Context(), plain); {
			case got.ok && got.text == "done":
				ran.Add(1)
			case got.outcome == busy:
				refusedCount.Add(1)
			default:
				e.Errorf("%+v", got)
			}
		})
	}
	sent.Wait()
	if ran.Load() != 1 || refusedCount.Load() != 8 {
		e.Errorf("%d have run, %d were refused with a time to retry", ran.Load(), refusedCount.Load())
	}
}

// Between two requests of one process the key stays locked in Redis.
func handOver(e *environment) {
	s := e.serve(route{
		locks: []lock{{keys: []key{byHeader}, options: []core.Option{core.WithWait(patience)}}},
		handler: func(c call) {
			e.events.await(e.T, core.Waiting, 1)
			c.Reply("done")
		},
	})
	var sent sync.WaitGroup
	for range 2 {
		sent.Go(func() { s.wantReply(plain, "done") })
	}
	sent.Wait()
	got := e.events.await(e.T, core.Acquired, 2)
	if len(got) != 2 || got[0].Grant != core.GrantFree || got[1].Grant != core.GrantPassed {
		e.Errorf("acquired %+v", got)
	}
}

// A request waits for a lock of another process.
func waitForAnother(e *environment) {
	s := e.serve(route{
		locks:   []lock{{keys: []key{byHeader}, options: []core.Option{core.WithWait(patience)}}},
		handler: func(c call) { c.Reply("done") },
	})
	e.take(theKey)
	freed := make(chan struct{})
	go func() {
		defer close(freed)
		e.events.await(e.T, core.Waiting, 1)
		e.free(theKey)
	}()
	s.wantReply(plain, "done")
	<-freed
}

// The observer gets one event of a middleware, and one of an endpoint. A body that was read before
// the wait needs no time after it.
func waitBeyondReadTimeout(e *environment) {
	short := &http.Server{ReadTimeout: time.Second}
	passThrough(e, short, request{keys: []string{theKey}}, byHeader)
	passThrough(e, short, plain, byBody)
	payTwice(e, short, ownOptions{})
	e.wantWaitWarnings(0, "")
	passThrough(e, short, plain, byHeader)
	payTwice(e, short, ownOptions{noFingerprint: true})
	e.wantWaitWarnings(2, "ReadTimeout")
}

// passThrough sends a request twice to a server, through a middleware that may wait.
func passThrough(e *environment, server *http.Server, r request, by key) {
	s := e.serve(route{
		outer: func(f frame) {
			f.SetContext(context.WithValue(f.Context(), http.ServerContextKey, server))
			f.Next()
		},
		locks:   []lock{{keys: []key{by}, options: []core.Option{core.WithWait(patience)}}},
		handler: func(c call) { c.Reply("done") },
	})
	s.wantReply(r, "done")
	s.wantReply(r, "done")
}

// payTwice sends a payment twice to a server, through an endpoint that may wait.
func payTwice(e *environment, server *http.Server, own ownOptions) {
	pay := e.f.endpoint(e.locks, endpoint{
		options: []core.Option{core.WithWait(patience)}, own: own,
		handler: func(t invocation) { t.WriteHeader(http.StatusCreated) },
	})
	for range 2 {
		ctx := context.WithValue(e.Context(), http.ServerContextKey, server)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, paymentsPath, strings.NewReader("{}"))
		r.SetBasicAuth("ada", "password")
		r.Header.Set("Idempotency-Key", "once")
		pay.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// wantWaitWarnings fails the test unless there were so many warnings, each about this timeout.
func (e *environment) wantWaitWarnings(n int, timeout string) {
	e.Helper()
	warnings, _ := e.events.of(core.Warned)
	if len(warnings) != n {
		e.Errorf("warnings: %v", warnings)
	}
	for _, warning := range warnings {
		if text := warning.Err.Error(); !strings.HasPrefix(text, "reqlock: "+e.f.name+": WithWait is 10s and "+timeout) {
			e.Errorf("warning: %s", text)
		}
	}
}
