package conformance

import (
	"errors"
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

// errorPathCases check the errors that frameworks return to outer middlewares beside the
// answer, for example to loggers.
func errorPathCases() []testCase {
	return []testCase{
		{"a refusal goes through the framework's own error path", errorPath, refusalIsAnError},
		{"a success leaves nothing in the framework's own error path", errorPath, successIsNoError},
	}
}

func refusalIsAnError(e *environment) {
	const hint = 1500 * time.Millisecond
	s := e.serve(route{
		outer: func(f frame) {
			f.Next()
			err := e.f.failure(f)
			var detail *core.Error
			if !errors.Is(err, core.ErrBusy) || !errors.As(err, &detail) || detail.RetryAfter != hint {
				e.Errorf("the error is %v", err)
			}
			if refusal, known := core.RefusalOf(err); !known || refusal.Code != "busy" {
				e.Errorf("the refusal is %+v, %v", refusal, known)
			}
		},
		locks: []lock{{keys: []key{byHeader}, options: []core.Option{core.WithRetryAfter(hint)}}},
	})
	e.take(theKey)
	s.wantRefusal(plain, e.rowOf(refused(core.ErrBusy, hint)))
}

func successIsNoError(e *environment) {
	s := e.serve(route{
		outer: func(f frame) {
			f.Next()
			if err := e.f.failure(f); err != nil {
				e.Errorf("the error is %v", err)
			}
		},
		locks:   []lock{{keys: []key{byHeader}}},
		handler: func(c call) { c.Reply("done") },
	})
	s.wantReply(plain, "done")
}
