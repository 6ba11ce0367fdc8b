package httpreply

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/bridge"
)

// A WaitCheck compares the wait of a middleware with the timeouts of its server, which run on
// while a request waits. It is safe for concurrent use.
type WaitCheck struct {
	adapter             adapter.Name
	locker              *core.Locker
	writeDone, readDone atomic.Bool // no warning of the timeout follows
}

// A serverTimeout is what a WaitCheck warns of once.
type serverTimeout struct {
	check *WaitCheck
	name  string
}

// NewWaitCheck returns the check of a middleware with this Locker.
func NewWaitCheck(n adapter.Name, l *core.Locker) *WaitCheck {
	c := &WaitCheck{adapter: n, locker: l}
	c.writeDone.Store(bridge.FactsOf(l).MaxWait == 0)
	c.readDone.Store(bridge.FactsOf(l).MaxWait == 0)
	return c
}

// Check compares the wait with the WriteTimeout of a request's server. A server closes the
// connection of a request that waits longer, and so sends no answer. If the wait is too long,
// the observer gets one warning.
func (c *WaitCheck) Check(r *http.Request) {
	if c.writeDone.Load() {
		return
	}
	if server := serverOf(r); server != nil && c.exceeds(server.WriteTimeout) && !c.writeDone.Swap(true) {
		c.warn("WriteTimeout", server.WriteTimeout, "a request that waits that long gets no answer: make WithWait shorter than WriteTimeout")
	}
}

// CheckBody compares the wait with the ReadTimeout of a request's server. After such a wait the
// handler cannot read the body. CheckBody is to be called after the key was read, because the
// body may be read with it. If the wait is too long, and the body is not read, the observer gets
// one warning.
func (c *WaitCheck) CheckBody(r *http.Request) {
	if c.readDone.Load() {
		return
	}
	if server := serverOf(r); server != nil && c.exceeds(server.ReadTimeout) && httpkey.HasUnreadBody(r) && !c.readDone.Swap(true) {
		c.warn("ReadTimeout", server.ReadTimeout, "the handler of a request that waits that long cannot read the body: "+
			"make WithWait shorter than ReadTimeout, or take the key from the body")
	}
}

// serverOf returns the server of a request, or nil if it is not known.
func serverOf(r *http.Request) *http.Server {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	return server
}

// exceeds reports whether the wait may last as long as a timeout of the server.
func (c *WaitCheck) exceeds(timeout time.Duration) bool {
	return timeout > 0 && bridge.FactsOf(c.locker).MaxWait >= timeout
}

func (c *WaitCheck) warn(name string, timeout time.Duration, result string) {
	adapter.Warn(c.locker, serverTimeout{c, name}, c.adapter.Errorf("WithWait is %v and %s of the http.Server is %v, so %s",
		bridge.FactsOf(c.locker).MaxWait, name, timeout, result))
}
