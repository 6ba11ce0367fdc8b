package protolock

import (
	"sync"
	"sync/atomic"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// interceptorsMade says which interceptors of Rules the program has made.
type interceptorsMade struct {
	unary, stream, idempotent atomic.Bool
	told                      sync.Once // done with the first call
}

// warnOfMissing sends an event for each method whose rule has no effect, because the program has
// not made its interceptor. It sends one for each method of InCode, too, if no interceptor has
// their ByMethod. It does so with the first call: all interceptors of a server are made
// before.
func (r *Rules) warnOfMissing(l *core.Locker) {
	r.made.told.Do(func() {
		for _, m := range r.methods {
			locks, interceptor := &r.made.unary, unaryName
			if m.IsStream() {
				locks, interceptor = &r.made.stream, streamName
			}
			if m.HasLock() && !locks.Load() {
				r.warnOf(l, m.FullMethod(), "a lock", interceptor)
			}
			if m.IsIdempotent() && !r.made.idempotent.Load() {
				r.warnOf(l, m.FullMethod(), "idempotent calls", idempotentName)
			}
		}
		for _, m := range r.inCode {
			if m.HasUnary() || m.HasStreams() {
				continue // the interceptor reports what one of the two kinds lacks
			}
			for _, method := range m.All() {
				adapter.Warn(l, missing{r, method, "InCode"}, self.Errorf("InCode names %s, which runs without a lock, because no interceptor has "+
					"its ByMethod: make them with grpclock.ServerOptions", method))
			}
		}
	})
}

// A missing is what Rules warn of once.
type missing struct {
	rules               *Rules
	method, interceptor string
}

// warnOf sends the event of one rule.
func (r *Rules) warnOf(l *core.Locker, method, rule, interceptor string) {
	adapter.Warn(l, missing{r, method, interceptor}, self.Errorf("%s declares %s, which has no effect, because the program has not made %s: "+
		"make all interceptors with Rules.ServerOptions", method, rule, interceptor))
}
