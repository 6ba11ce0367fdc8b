package conformance

import (
	"errors"
	"time"

	"github.com/reqlock/reqlock/core"
)

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
			if outcome, known := core.OutcomeOf(err); !known || outcome.Code != "busy" {
				e.Errorf("the outcome is %+v, %v", outcome, known)
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
