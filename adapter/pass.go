package adapter

import "context"

// A pass is a request on its way through a middleware of reqlock inside an idempotent one, which
// lets the request run or refuses it. The idempotent one learns which. A request in none has a nil
// pass, whose methods do nothing.
//
// An Entry calls newPass, then run, or refused and its like, then returned if the request has
// run and did not panic, and leave in each case.
//
// A pass is the context of the request behind the middleware, so that the middlewares there
// find it. All methods are safe for concurrent use: a middleware may run a request in another
// goroutine.
type pass struct {
	context.Context
	in       *inside
	outer    *pass // around this one, or nil
	isRPC    bool
	isBase   bool // it is that of the idempotent middleware's own handler
	refusing      // used by the goroutine of the request alone

	// Guarded by the mutex of in.
	answered bool // before the middleware answers
	runs     bool // run was called
	rejected bool // by this middleware, or by one inside
	ended    bool // returned was called
	left     bool // leave was called
}

// passKey is the key of a pass in its context. An HTTP route and a gRPC server behind it do not see
// the passes of each other, because their refusals are not alike.
type passKey struct{ isRPC bool }

// Value returns the pass, or a value of the context around it.
func (p *pass) Value(key any) any {
	if key == (passKey{p.isRPC}) {
		return p
	}
	return p.Context.Value(key)
}

// passOf returns the innermost pass of a context, or nil.
func passOf(ctx context.Context, isRPC bool) *pass {
	p, _ := ctx.Value(passKey{isRPC}).(*pass)
	return p
}

// newPass begins the pass of a request with the context.
func newPass(ctx context.Context, isRPC bool) *pass {
	outer := passOf(ctx, isRPC)
	if outer == nil {
		return nil
	}
	in := outer.in
	in.mu.Lock()
	defer in.mu.Unlock()
	in.entered++
	return &pass{Context: ctx, isRPC: isRPC, in: in, outer: outer, answered: in.recorder.hasAnswer()}
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
			p.in.broken = true
			p.in.lost = p.in.lost || isLoss(ended)
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
		p.in.entered--
		panicked := p.in.recorder == nil && !p.ended // an RPC may have been run by the one that has panicked
		p.in.ran = p.in.ran || p.runs && (!p.rejected || panicked)
		p.in.broken = p.in.broken || p.runs && !p.ended
	})
}

// interrupt records that nobody knows how the request has ended behind the middleware.
func (p *pass) interrupt() { p.set(func() { p.in.broken = true }) }

// resend records that the request was sent more than once behind the middleware, so that an earlier
// try may have taken effect, whatever the answer of the last one is.
func (p *pass) resend() { p.set(func() { p.in.resent = true }) }

// set calls f under the mutex of the pass, unless it is nil.
func (p *pass) set(f func()) {
	if p == nil {
		return
	}
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	f()
}
