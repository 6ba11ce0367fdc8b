package echolock

import "github.com/labstack/echo/v4"

// A refusal is kept in the context of a refused request, for a middleware outside
// that retries the request: if the retry runs, its answer must not contain parts of
// the refusal.
type refusal struct {
	status int   // of the response, before the refusal
	over   bool  // a retry of the request runs
	made   error // the last error of WriteError
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
