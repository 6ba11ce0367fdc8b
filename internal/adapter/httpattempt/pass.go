package httpattempt

import "context"

// A Pass is a request on its way through a middleware of reqlock inside an Exchange, which
// lets the request run or refuses it. The Exchange learns which. A request in no Exchange has
// a nil Pass, whose methods do nothing.
//
// A Pass is the context of the request behind the middleware, so that the middlewares there
// find it. All methods are safe for concurrent use: a middleware may run a request in another
// goroutine.
type Pass struct {
	context.Context
	recorder *Recorder
	outer    *Pass // nil for that of the Exchange itself
	answered bool  // before

	// Guarded by the mutex of the Recorder.
	refused bool // by this middleware, or by one inside
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

// Enter begins the Pass of a request with the context.
func Enter(ctx context.Context) *Pass {
	outer, _ := ctx.Value(passKey{}).(*Pass)
	if outer == nil {
		return nil
	}
	return &Pass{Context: ctx, recorder: outer.recorder, outer: outer, answered: outer.recorder.answered()}
}

// Inside returns the context of the request behind the middleware. ctx is the one of Enter.
func (p *Pass) Inside(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return p
}

// Run records that the middleware lets the request run. The middleware calls Leave when the
// request has run.
func (p *Pass) Run() *Pass {
	if p == nil {
		return nil
	}
	p.recorder.mu.Lock()
	defer p.recorder.mu.Unlock()
	p.recorder.running++
	return p
}

// Leave records that the request has run. If nothing inside has refused it, its handler may
// have had its effect.
func (p *Pass) Leave() {
	if p == nil {
		return
	}
	r := p.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	r.ran = r.ran || !p.refused
}

// Refused records that the middleware has refused the request. It has answered with the
// status, or returns err to a framework that will. A status of 0 is not known. ours says that
// reqlock or the key function has made this answer. Otherwise a function of the application
// has, which may have run the request by other means.
func (p *Pass) Refused(status int, ours bool, err error) {
	if p == nil {
		return
	}
	r := p.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	for pass := p; pass != nil; pass = pass.outer {
		pass.refused = true
	}
	r.late = r.late || r.ran
	r.ran = r.ran || !ours && status != 0 && !isClientError(status)
	if !r.refusal.answered { // if an earlier one is the answer, no later one is
		answered := !p.answered && r.hasAnswer()
		r.refusal = refusal{
			given: true, status: status, ours: ours, err: err,
			answered: answered, whole: answered && (len(r.body) > 0 || r.passedThrough),
		}
	}
}

// NotSent records that the middleware is a proxy that has sent nothing to its service. The
// proxy itself has answered, or a function of the application has.
func (p *Pass) NotSent(byProxy bool) {
	if p == nil {
		return
	}
	status := p.recorder.recordedStatus()
	p.Refused(status, byProxy || !p.answered && isGatewayError(status), nil)
}
