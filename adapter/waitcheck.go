package adapter

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/httpbody"
)

// A waitCheck compares the wait of a middleware with the timeouts of its server, which run on
// while a request waits. It is safe for concurrent use.
type waitCheck struct {
	adapter             Name
	locker              *core.Locker
	writeDone, readDone atomic.Bool // no warning of the timeout follows
}

// A serverTimeout is what a waitCheck warns of once.
type serverTimeout struct {
	by   *waitCheck
	name string
}

// newWaitCheck returns the check of a middleware with this Locker.
func newWaitCheck(n Name, l *core.Locker) *waitCheck {
	c := &waitCheck{adapter: n, locker: l}
	c.writeDone.Store(bridge.FactsOf(l).MaxWait == 0)
	c.readDone.Store(bridge.FactsOf(l).MaxWait == 0)
	return c
}

// check compares the wait with the WriteTimeout of the server of a request with the context. A server closes the
// connection of a request that waits longer, and so sends no answer. If the wait is too long,
// the observer gets one warning.
func (c *waitCheck) check(ctx context.Context) {
	if c.writeDone.Load() {
		return
	}
	if server := serverOf(ctx); server != nil && c.exceeds(server.WriteTimeout) && !c.writeDone.Swap(true) {
		c.warn("WriteTimeout", server.WriteTimeout, "a request that waits that long gets no answer: make WithWait shorter than WriteTimeout")
	}
}

// checkBody compares the wait with the ReadTimeout of a request's server. After such a wait the
// handler cannot read the body. It is to be called after the key was read, because the
// body may be read with it. If the wait is too long, and the body is not read, the observer gets
// one warning.
func (c *waitCheck) checkBody(r *http.Request) {
	if c.readDone.Load() {
		return
	}
	if server := serverOf(r.Context()); server != nil && c.exceeds(server.ReadTimeout) && httpbody.HasUnread(r) && !c.readDone.Swap(true) {
		c.warn("ReadTimeout", server.ReadTimeout, "the handler of a request that waits that long cannot read the body: "+
			"make WithWait shorter than ReadTimeout, or take the key from the body")
	}
}

// serverOf returns the server of a request, or nil if it is not known.
func serverOf(ctx context.Context) *http.Server {
	server, _ := ctx.Value(http.ServerContextKey).(*http.Server)
	return server
}

// exceeds reports whether the wait may last as long as a timeout of the server.
func (c *waitCheck) exceeds(timeout time.Duration) bool {
	return timeout > 0 && bridge.FactsOf(c.locker).MaxWait >= timeout
}

func (c *waitCheck) warn(name string, timeout time.Duration, result string) {
	Warn(c.locker, serverTimeout{c, name}, c.adapter.Errorf("WithWait is %v and %s of the http.Server is %v, so %s",
		bridge.FactsOf(c.locker).MaxWait, name, timeout, result))
}
