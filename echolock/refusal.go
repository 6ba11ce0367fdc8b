package echolock

import (
	"errors"

	"github.com/labstack/echo/v4"

	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
	"github.com/reqlock/reqlock/internal/adapter/httpreply"
)

// A refusal is kept in the context of a refused request, for a middleware outside
// that retries the request: if the retry runs, its answer must not contain parts of
// the refusal.
type refusal struct {
	status int   // of the response, before the refusal
	over   bool  // a retry of the request runs
	made   error // the last error of WriteError
}

// of returns the answer to a request that is refused because of err: what the error handler has
// answered on the Guard, or else what Echo renders of the error answer.
func (r *refusal) of(answer, err error, guard *httpreply.Guard) httpattempt.Refusal {
	refused := httpattempt.Refusal{Status: statusIn(answer), Cause: err}
	switch {
	case guard.Answered(), answer == nil:
		refused = httpattempt.RefusalBy(guard, err)
	case errors.Is(answer, r.made):
		refused = httpattempt.RefusalOf(err)
		refused.Status = statusIn(answer)
	}
	refused.Err = answer
	return refused
}

// refusalName is the name of the refusal in the context.
const refusalName = "github.com/reqlock/reqlock/echolock.refusal"

// refusalOf returns the refusal of a request, and adds one if there is none.
func refusalOf(c echo.Context) *refusal {
	r, refused := c.Get(refusalName).(*refusal)
	if !refused {
		r = &refusal{status: c.Response().Status}
		c.Set(refusalName, r)
	}
	return r
}

// endRefusal removes the effects of a refusal before a request runs.
func endRefusal(c echo.Context) {
	if r, refused := c.Get(refusalName).(*refusal); refused {
		r.over = true
		c.Response().Status = r.status
		c.Set(refusalName, nil)
	}
}
