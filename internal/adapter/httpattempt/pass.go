package httpattempt

import "context"

// A Pass is a request on its way through a middleware of reqlock inside an Exchange, which
// lets the request run or refuses it. The Exchange learns which. A request in no Exchange has
// a nil Pass, whose methods do nothing.
//
// The middleware calls Enter, then Run, or Refused and its like, then Returned if the request has
// run and did not panic, and Leave in each case.
//
// A Pass is the context of the request behind the middleware, so that the middlewares there
// find it. All methods are safe for concurrent use: a middleware may run a request in another
// goroutine.
type Pass struct {
	context.Context
	recorder *Recorder
	outer    *Pass // nil for that of the Exchange itself

	// Guarded by the mutex of the Recorder.
	answered bool // before the middleware answers
	runs     bool // Run was called
	refused  bool // by this middleware, or by one inside
	returned bool // Returned was called
	left     bool // Leave was called
}

// passKey is the key of a Pass in its context.
type passKey struct{}

// Value returns the Pass, or a value of the context around it.
func (p *Pass) Value(key any) any {
	if key == (passKey{}) {
		return p
	}
	return p.Context.Value(key)
}

// passOf returns the innermost Pass of a context, or nil.
func passOf(ctx context.Context) *Pass {
	p, _ := ctx.Value(passKey{}).(*Pass)
	return p
}

// Enter begins the Pass of a request with the context.
func Enter(ctx context.Context) *Pass {
	outer := passOf(ctx)
	if outer == nil {
		return nil
	}
	r := outer.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside++
	return &Pass{Context: ctx, recorder: r, outer: outer, answered: r.hasAnswer()}
}

// Inside returns the context of the request behind the middleware. ctx is the one of Enter.
func (p *Pass) Inside(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return p
}

// Run records that the middleware lets the request run.
func (p *Pass) Run() { p.set(func() { p.runs = true }) }

// Returned records that the handler behind the middleware has returned. ended is the cause with
// which the context of its lease, or that of the request, has ended, or nil.
func (p *Pass) Returned(ended error) {
	p.set(func() {
		p.returned = true
		if ended != nil {
			p.recorder.broken = true
			p.recorder.lost = p.recorder.lost || IsLoss(ended)
		}
	})
}

// Leave records that the request has left the middleware. If it has run, and nothing inside has
// refused it, its handler may have had its effect. Further calls do nothing.
func (p *Pass) Leave() {
	p.set(func() {
		if p.left {
			return
		}
		p.left = true
		r := p.recorder
		r.inside--
		r.ran = r.ran || p.runs && !p.refused
		r.broken = r.broken || p.runs && !p.returned
	})
}

// Break records that nobody knows how the request has ended behind the middleware.
func (p *Pass) Break() { p.set(func() { p.recorder.broken = true }) }

// Resent records that the request was sent more than once behind the middleware, so that an earlier
// try may have taken effect, whatever the answer of the last one is.
func (p *Pass) Resent() { p.set(func() { p.recorder.resent = true }) }

// set calls f under the mutex of the Recorder, unless p is nil.
func (p *Pass) set(f func()) {
	if p == nil {
		return
	}
	p.recorder.mu.Lock()
	defer p.recorder.mu.Unlock()
	f()
}
