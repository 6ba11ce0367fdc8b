package conformance

import (
	"time"

	"github.com/reqlock/reqlock/core"
)

// hookCases are about the application's own error handler.
func hookCases() []testCase {
	return []testCase{
		{"an error handler gives its own answer", everywhere, ownAnswer},
		{"an error handler that is silent gives no success", everywhere, noAnswer},
		{"an error handler is not asked for the handler's own errors", everywhere, notAsked},
	}
}

func ownAnswer(e *env) {
	s := e.serve(route{locks: []lock{{keys: []key{byHeader}, hook: ownHook}}})
	e.take(theKey)
	s.wantRefusal(plain, e.f.hooked)
	if got := s.send(e.Context(), plain); !says(got, hookText) {
		e.Errorf("the answer lacks the application's words: %s", got.raw)
	}
}

func noAnswer(e *env) {
	s := e.serve(route{locks: []lock{{keys: []key{byHeader}, hook: silentHook}}})
	e.take(theKey)
	s.wantRefusal(plain, e.rowOf(refused(core.ErrBusy, time.Second)))
}

func notAsked(e *env) {
	s := e.serve(route{
		locks:   []lock{{keys: []key{byHeader}, hook: ownHook}},
		handler: func(c call) { c.Refuse("no funds") },
	})
	if got := s.send(e.Context(), plain); got.ok || !says(got, "no funds") {
		e.Errorf("the handler's answer became %s", got.raw)
	}
}
