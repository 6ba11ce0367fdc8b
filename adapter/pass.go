package adapter

import "context"

// A pass is a request on its way through a middleware of reqlock inside an Exchange, which
// lets the request run or refuses it. The Exchange learns which. A request in no Exchange has
// a nil pass, whose methods do nothing.
//
// An Entry calls newPass, then run, or refused and its like, then returned if the request has
// run and did not panic, and leave in each case.
//
// A pass is the context of the request behind the middleware, so that the middlewares there
// find it. All methods are safe for concurrent use: a middleware may run a request in another
// goroutine.
type pass struct {
	context.Context
	recorder *Recorder
	outer    *pass // nil for that of the Exchange itself
	refusing       // used by the goroutine of the request alone

	// Guarded by the mutex of the Recorder.
	answered bool // before the middleware answers
	runs     bool // run was called
	rejected bool // by this middleware, or by one inside
	ended    bool // returned was called
	left     bool // leave was called
}

// passKey is the key of a pass in its context.
type passKey struct{}

// Value returns the pass, or a value of the context around it.
func (p *pass) Value(key any) any {
	if key == (passKey{}) {
		return p
	}
	return p.Context.Value(key)
}

// passOf returns the innermost pass of a context, or nil.
func passOf(ctx context.Context) *pass {
	p, _ := ctx.Value(passKey{}).(*pass)
	return p
}

// newPass begins the pass of a request with the context.
func newPass(ctx context.Context) *pass {
	outer := passOf(ctx)
	if outer == nil {
		return nil
	}
	r := outer.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside++
	return &pass{Context: ctx, recorder: r, outer: outer, answered: r.hasAnswer()}
}

// within returns the context of the request behind the middleware. ctx is the one of newPass.
func (p *pass) within(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return p
}

// run records that the middleware lets the request run.
func (p *pass) run() { p.set(func() { p.runs = true }) }

// returned records that the handler behind the middleware has returned. ended is the cause with
// which the context of its lease, or that of the request, has ended, or nil.
func (p *pass) returned(ended error) {
	p.set(func() {
		p.ended = true
		if ended != nil {
			p.recorder.broken = true
			p.recorder.lost = p.recorder.lost || isLoss(ended)
		}
	})
}

// leave records that the request has left the middleware. If it has run, and nothing inside has
// refused it, its handler may have had its effect. Further calls do nothing.
func (p *pass) leave() {
	p.set(func() {
		if p.left {
			return
		}
		p.left = true
		r := p.recorder
		r.inside--
		r.ran = r.ran || p.runs && !p.rejected
		r.broken = r.broken || p.runs && !p.ended
	})
}

// interrupt records that nobody knows how the request has ended behind the middleware.
func (p *pass) interrupt() { p.set(func() { p.recorder.broken = true }) }

// resend records that the request was sent more than once behind the middleware, so that an earlier
// try may have taken effect, whatever the answer of the last one is.
func (p *pass) resend() { p.set(func() { p.recorder.resent = true }) }

// set calls f under the mutex of the Recorder, unless p is nil.
func (p *pass) set(f func()) {
	if p == nil {
		return
	}
	p.recorder.mu.Lock()
	defer p.recorder.mu.Unlock()
	f()
}
