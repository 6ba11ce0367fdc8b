package adapter

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// A handler that does not return sends nothing. Its outcome is unknown. Exception: the handler
// has decided EndAbort, or Unknown denies it and no status is written that is stored.
func TestOutcomeIsUnknownIfTheHandlerDoesNotReturn(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t).Locker
	never := func(core.Failure) bool { return false }
	uncertain, free := newEndpoint(t, locks), newEndpoint(t, locks, core.WithUnknown(never))
	ends := map[string]func(){
		"panic": func() { panic("crash") }, "abort": func() { panic(http.ErrAbortHandler) }, "Goexit": runtime.Goexit,
	}
	for name, test := range map[string]struct {
		handler func(run)
		next    error // by default
		freed   error // if Unknown returns false
	}{
		"nothing":         {func(run) {}, core.ErrOutcomeUnknown, errRuns},
		"another status":  {func(r run) { r.answers(500) }, core.ErrOutcomeUnknown, errRuns},
		"a 503":           {func(r run) { r.answers(503) }, core.ErrOutcomeUnknown, errRuns},
		"a stored status": {func(r run) { r.answers(201) }, core.ErrOutcomeUnknown, core.ErrOutcomeUnknown},
		"a disconnect":    {func(r run) { r.cancel() }, core.ErrOutcomeUnknown, errRuns},
		"a bypass":        {func(r run) { r.x.SetSent(200) }, core.ErrOutcomeUnknown, core.ErrOutcomeUnknown},
		"a hijack":        {func(r run) { r.takesOver() }, core.ErrOutcomeUnknown, core.ErrOutcomeUnknown},
		"EndAbort": {func(r run) {
			r.decides(core.EndAbort)
			r.answers(201)
		}, errRuns, errRuns},
		"EndNoEffect":                  {func(r run) { r.decides(core.EndNoEffect) }, errRuns, errRuns},
		"EndNoEffect, a stored status": {func(r run) { r.decides(core.EndNoEffect); r.answers(201) }, core.ErrOutcomeUnknown, core.ErrOutcomeUnknown},
		"EndNoEffect, a hijack":        {func(r run) { r.decides(core.EndNoEffect); r.takesOver() }, core.ErrOutcomeUnknown, core.ErrOutcomeUnknown},
		"EndNoEffect, a chosen status": {func(r run) { r.decides(core.EndNoEffect); r.x.SetStatus(201) }, core.ErrOutcomeUnknown, errRuns},
		"EndNoEffect, and its end":     {func(r run) { r.decides(core.EndNoEffect); r.decides(core.EndUndecided) }, core.ErrOutcomeUnknown, errRuns},
		"EndCommit":                    {func(r run) { r.decides(core.EndCommit) }, core.ErrOutcomeUnknown, core.ErrOutcomeUnknown},
		"EndDone":                      {func(r run) { r.decides(core.EndDone) }, core.ErrOutcomeUnknown, core.ErrOutcomeUnknown},
		"EndUnknown":                   {func(r run) { r.decides(core.EndUnknown) }, core.ErrOutcomeUnknown, core.ErrOutcomeUnknown},
	} {
		for how, end := range ends {
			for endpoint, want := range map[*IdempotentHTTP[*http.Request]]error{uncertain: test.next, free: test.freed} {
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
		endpoint := newEndpoint(t, locks, core.WithStored(func(int) bool {
			if calls++; calls == 1 {
				panic("Stored")
			}
			return false
		}))
		runOnce(t, endpoint, name, func(r run) {
			r.answers(500)
			if panics {
				panic("crash")
			}
		})
		if got := next(t, endpoint, name, nil); !errors.Is(got, core.ErrOutcomeUnknown) {
			t.Errorf("%s: next: %v", name, got)
		}
	}
}
