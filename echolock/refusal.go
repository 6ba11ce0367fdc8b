package echolock

import "github.com/labstack/echo/v4"

// A refusal is what a request keeps of having been refused, for a middleware
// outside that tries it again: when it runs after all, its answer carries
// nothing of the refusal.
type refusal struct {
	status int  // of the response, before
	over   bool // the request runs
}

// refusalName is where it is kept in the context.
const refusalName = "github.com/reqlock/reqlock/echolock.refusal"

// refusalOf returns the refusal of a request that is being refused.
func refusalOf(c echo.Context) *refusal {
	r, refused := c.Get(refusalName).(*refusal)
	if !refused {
		r = &refusal{status: c.Response().Status}
		c.Set(refusalName, r)
	}
	return r
}

// endRefusal is called for a request that runs.
func endRefusal(c echo.Context) {
	if r, refused := c.Get(refusalName).(*refusal); refused {
		r.over = true
		c.Response().Status = r.status
		c.Set(refusalName, nil)
	}
}
