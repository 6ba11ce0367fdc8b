package conformance

import (
	"time"

	"github.com/reqlock/reqlock/core"
)

// hookCases test the application's own error handler.
func hookCases() []testCase {
	return []testCase{
		{"an error handler answers", everywhere, ownAnswer},
		{"an error handler that does not answer causes no success", everywhere, noAnswer},
		{"an error handler is not called for the handler's own errors", everywhere, notAsked},
	}
}

func ownAnswer(e *environment) {
	s := e.serve(route{locks: []lock{{keys: []key{byHeader}, hook: ownHook}}})
	e.take(theKey)
	s.wantRefusal(plain, e.f.hooked)
	if got := s.send(e.Context(), plain); !says(got, hookText) {
		e.Errorf("the answer does not contain the application's text: %s", got.raw)
	}
}

func noAnswer(e *environment) {
	s := e.serve(route{locks: []lock{{keys: []key{byHeader}, hook: silentHook}}})
	e.take(theKey)
	s.wantRefusal(plain, e.rowOf(refused(core.ErrBusy, time.Second)))
}

func notAsked(e *environment) {
	s := e.serve(route{
		locks:   []lock{{keys: []key{byHeader}, hook: ownHook}},
		handler: func(c call) { c.Refuse("no funds") },
	})
	if got := s.send(e.Context(), plain); got.ok || !says(got, "no funds") {
		e.Errorf("the handler's answer became %s", got.raw)
	}
}
