package adapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/answer"
)

// What the next request with the key gets, besides an error.
var (
	errRuns    = errors.New("the request runs")
	errReplays = errors.New("the request gets the first answer")
)

// The status of the answer, the handler's decision and the way to answer decide how an
// attempt ends. The client gets the answer in any case.
func TestAnswerDecidesHowAnAttemptEnds(t *testing.T) {
	t.Parallel()
	const outside = 0 // an outer middleware answers
	endpoint := newEndpoint(t, locktest.New(t, core.WithMaxAnswer(1000)).Locker)
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
		"a failure's status":   {func(r run) { r.answers(500) }, 500, core.ErrOutcomeUnknown},
		"a 499":                {func(r run) { r.answers(499) }, 499, core.ErrOutcomeUnknown},
		"a gateway's failure":  {func(r run) { r.answers(502) }, 502, core.ErrOutcomeUnknown},
		"a gateway's deadline": {func(r run) { r.answers(504) }, 504, core.ErrOutcomeUnknown},
		"another status, EndCommit": {func(r run) {
			r.decides(core.EndCommit)
			r.answers(500)
		}, 500, errReplays},
		"a stored status, EndAbort": {func(r run) {
			r.decides(core.EndAbort)
			r.answers(201)
		}, 201, errRuns},
		"a stored status, EndUnknown": {func(r run) {
			r.decides(core.EndUnknown)
			r.answers(201)
		}, 201, core.ErrOutcomeUnknown},
		"another status, EndAbort": {func(r run) {
			r.decides(core.EndAbort)
			r.answers(500)
		}, 500, errRuns},
		"an implied status that is not stored": {func(r run) { r.x.SetStatus(503) }, outside, errRuns},
		"an implied 500":                       {func(r run) { r.x.SetStatus(500) }, outside, core.ErrOutcomeUnknown},
		"a failure":                            {func(r run) { r.x.SetFailed(0) }, outside, core.ErrOutcomeUnknown},
		"a failure, 500":                       {func(r run) { r.x.SetFailed(500) }, outside, core.ErrOutcomeUnknown},
		"a failure, 402":                       {func(r run) { r.x.SetFailed(402) }, outside, errRuns},
		"a failure, 200":                       {func(r run) { r.x.SetFailed(200) }, outside, core.ErrOutcomeUnknown},
		"a failure, EndAbort": {func(r run) {
			r.decides(core.EndAbort)
			r.x.SetFailed(0)
		}, outside, errRuns},
		"a failure, EndCommit": {func(r run) {
			r.decides(core.EndCommit)
			r.x.SetFailed(0)
		}, outside, core.ErrUnreplayable},
		"a failure after an answer": {func(r run) {
			r.answers(201)
			r.x.SetFailed(500)
		}, 201, errReplays},
		"a failure after a hijack": {func(r run) {
			r.takesOver()
			r.x.SetFailed(500)
		}, outside, core.ErrUnreplayable},
		"a bypass": {func(r run) { r.x.SetSent(200) }, outside, core.ErrUnreplayable},
		"a bypass after another status": {func(r run) {
			r.answers(500)
			r.x.SetSent(200)
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

		"a failure, EndNoEffect": {func(r run) {
			r.decides(core.EndNoEffect)
			r.answers(500)
		}, 500, errRuns},
		"a stored status, EndNoEffect": {func(r run) {
			r.decides(core.EndNoEffect)
			r.answers(201)
		}, 201, errReplays},
		"a flushed failure, EndNoEffect": {func(r run) {
			r.decides(core.EndNoEffect)
			r.answers(500)
			r.Flush()
		}, 500, core.ErrOutcomeUnknown},
		"a hijack, EndNoEffect": {func(r run) {
			r.decides(core.EndNoEffect)
			r.takesOver()
		}, outside, core.ErrUnreplayable},
		"a failure, after the end of EndNoEffect": {func(r run) {
			r.decides(core.EndNoEffect)
			r.decides(core.EndUndecided)
			r.answers(500)
		}, 500, core.ErrOutcomeUnknown},
		"a failure of a second run, after the end of EndNoEffect": {func(r run) {
			r.decides(core.EndNoEffect)
			r.decides(core.EndUndecided)
			r.decides(core.EndNoEffect)
			r.answers(500)
		}, 500, core.ErrOutcomeUnknown},
		"no answer after the end of the context, EndNoEffect": {func(r run) {
			r.decides(core.EndNoEffect)
			r.cancel()
		}, outside, errRuns},
		"a disconnect": {func(r run) { r.cancel() }, outside, core.ErrOutcomeUnknown},
		"a disconnect and a stored status": {func(r run) {
			r.cancel()
			r.answers(201)
		}, 201, errReplays},
		"a disconnect and another status": {func(r run) {
			r.cancel()
			r.answers(503)
		}, 503, core.ErrOutcomeUnknown},
		"a disconnect and a 500": {func(r run) {
			r.cancel()
			r.answers(500)
		}, 500, core.ErrOutcomeUnknown},
		"a disconnect, EndCommit": {func(r run) {
			r.cancel()
			r.decides(core.EndCommit)
		}, outside, errReplays},
		"a disconnect, EndAbort": {func(r run) {
			r.cancel()
			r.decides(core.EndAbort)
		}, outside, errRuns},
		"a disconnect and a failure": {func(r run) {
			r.cancel()
			r.x.SetFailed(402)
		}, outside, core.ErrOutcomeUnknown},
		"a disconnect and an implied status": {func(r run) {
			r.cancel()
			r.x.SetStatus(200)
		}, outside, core.ErrOutcomeUnknown},
		"a disconnect and a bypass": {func(r run) {
			r.cancel()
			r.x.SetSent(200)
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
	rec := newRecorder(first, answer.Filter{}, plenty)
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

// A framework without net/http may have no status yet when its handler returns.
func TestRunAnswer(t *testing.T) {
	t.Parallel()
	before := http.Header{"X-Outer": {"1"}}
	for name, test := range map[string]struct {
		answer HTTPAnswer
		leaves bool // the client disconnects, and the handler gives up
		want   HTTPAnswer
		err    error
	}{
		"an answer":        {HTTPAnswer{201, http.Header{"X-Outer": {"1"}, "Link": {"a"}}, []byte("paid")}, false, HTTPAnswer{201, http.Header{"Link": {"a"}}, []byte("paid")}, nil},
		"a body":           {HTTPAnswer{0, before, []byte("paid")}, false, HTTPAnswer{200, nil, []byte("paid")}, nil},
		"nothing":          {HTTPAnswer{0, before, nil}, false, HTTPAnswer{200, nil, nil}, nil},
		"nothing, cut off": {HTTPAnswer{0, before, nil}, true, HTTPAnswer{}, core.ErrOutcomeUnknown},
	} {
		e := newEndpoint(t, locktest.New(t).Locker, core.WithClientCancel(true))
		ctx, cancel := context.WithCancel(t.Context())
		x, err := begin(e, payment(t, "k", "").WithContext(ctx))
		if err == nil {
			err = x.RunAnswer(ctx, before, func(context.Context) HTTPAnswer {
				if test.leaves {
					cancel()
				}
				return test.answer
			})
		}
		cancel()
		if !errors.Is(err, test.err) {
			t.Errorf("%s: %v", name, err)
		}
		x, err = begin(e, payment(t, "k", ""))
		if !errors.Is(err, test.err) {
			t.Errorf("%s: the copy got %v", name, err)
		} else if err == nil && fmt.Sprint(x.answer) != fmt.Sprint(test.want) {
			t.Errorf("%s: %v is stored, want %v", name, x.answer, test.want)
		}
	}
}

// A refusal inside that has only a status is not stored as the answer.
func TestRunAnswerThatIsRefusedByAStatus(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	e := newEndpoint(t, locks, core.WithStored(func(int) bool { return true }))
	lock := Must(NewLock(self, "Middleware", locks, core.Getter(func(string) string { return "" }), nil))
	for range 2 {
		x, err := begin(e, payment(t, "k", ""))
		if err != nil || x.Replayed() {
			t.Fatalf("a refusal is stored: %v", err)
		}
		w := httptest.NewRecorder()
		_ = x.RunAnswer(t.Context(), nil, func(ctx context.Context) HTTPAnswer {
			entry, err := lock.Enter(ctx, "")
			defer entry.Leave()
			entry.Guard(w, err).WriteHeader(http.StatusTeapot)
			return HTTPAnswer{Status: w.Code}
		})
	}
}

// A mux behind the middleware names an unknown outcome, and no other event. The pattern of its redirect
// may be the path.
func TestUnknownOutcomeHasTheRouteOfAMuxBehind(t *testing.T) {
	t.Parallel()
	names := map[core.EventKind]string{}
	locks := locktest.New(t, core.WithObserver(func(e core.Event) { names[e.Kind] = e.Name }))
	endpoint := newEndpoint(t, locks.Locker)
	for want, handler := range map[string]func(run){
		"POST /payments": func(r run) { r.running.Pattern = "/payments"; r.answers(500) },
		"POST /panics":   func(r run) { r.running.Pattern = "POST /panics"; panic("of the handler") },
		"":               func(r run) { r.running.Pattern = "/secret/"; r.decides(core.EndUnknown); r.answers(307) },
	} {
		clear(names)
		runOnce(t, endpoint, "k"+want, handler)
		if got, sent := names[core.OutcomeUnknown]; !sent || got != want || names[core.Acquired] != "" || names[core.Released] != "" {
			t.Errorf("%q: %q", want, names)
		}
	}
}
