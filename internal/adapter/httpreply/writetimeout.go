package httpreply

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// A WaitCheck compares the wait of a middleware with the WriteTimeout of its server. A server
// closes the connection of a request that waits longer, and so sends no answer. It is safe for
// concurrent use.
type WaitCheck struct {
	adapter registration.Adapter
	locker  *core.Locker
	done    atomic.Bool
}

// NewWaitCheck returns the check of a middleware with this Locker.
func NewWaitCheck(a registration.Adapter, l *core.Locker) *WaitCheck {
	c := &WaitCheck{adapter: a, locker: l}
	c.done.Store(l.MaxWait() == 0)
	return c
}

// Check compares the wait with the timeout of a request's server. If the wait is too long, the
// observer gets one warning.
func (c *WaitCheck) Check(r *http.Request) {
	if c.done.Load() {
		return
	}
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	wait := c.locker.MaxWait()
	if !ok || server.WriteTimeout <= 0 || wait < server.WriteTimeout || c.done.Swap(true) {
		return
	}
	c.locker.Warn(fmt.Errorf("reqlock: %s: WithWait is %v and WriteTimeout of the http.Server is %v, so a request that waits that long "+
		"gets no answer: make WithWait shorter than WriteTimeout", c.adapter, wait, server.WriteTimeout))
}
