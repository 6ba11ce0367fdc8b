package console

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// refused returns what a page says about an action that has failed with this error. change says what is not as the form
// has it, if that is the reason.
func refused(a action, err error, change string) answer {
	why := strings.ReplaceAll(err.Error(), "reqlock: ", "")
	why = strings.ToUpper(why[:1]) + why[1:]
	to := answer{status: http.StatusConflict, reason: a.reason, sent: a.kind}
	switch {
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		to.status = http.StatusServiceUnavailable
		to.alert = "Redis did not reply, or refused a command, so perhaps it was done: look again. " + why
	case errors.Is(err, inspect.ErrChanged), errors.Is(err, core.ErrChanged):
		to.alert = "Nothing was done. " + change + " since you opened the form."
	default:
		to.alert = "Nothing was done. " + why + "."
	}
	return to
}

// changeOf says what has become of the lock of a form.
func changeOf(now inspect.Lock) string {
	switch {
	case len(now.Holders) == 0:
		return "The lease has ended"
	case now.Shared:
		return "A lease that you chose has ended"
	case now.Holders[0].Kind == inspect.HolderRevoked:
		return "The lease was revoked"
	default:
		return "The lock has a new holder"
	}
}
