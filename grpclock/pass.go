package grpclock

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
)

// A pass is a call on its way through an interceptor inside an exchange, which lets the call run
// or refuses it. The exchange learns which. The interceptor calls enter, and leave in each case.
//
// A pass is the context of the call behind the interceptor, so that the interceptors there find it.
// It is a field of Call, so it needs no allocation.
type pass struct {
	context.Context
	exchange *exchange   // nil if the call is in none
	outer    *pass       // around this one, also in an exchange around this one; nil if there is none
	ran      bool        // the handler behind the interceptor may have had its effect
	returned bool        // it has returned
	refused  atomic.Bool // an interceptor behind this one has refused the call
	left     atomic.Bool
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

// enter begins the pass of a call.
func (c *Call) enter() *pass {
	p := &c.pass
	if p.exchange = exchangeOf(c.ctx); p.exchange != nil {
		p.outer, _ = c.ctx.Value(passKey{}).(*pass)
		p.exchange.inside.Add(1)
	}
	return p
}

// run runs the handler of a call. ctx is the context of its lease. The error is the one for the
// client. If it is a refusal of an interceptor inside, the handler has not run.
func (p *pass) run(ctx context.Context, req any, handler grpc.UnaryHandler) (reply any, err error) {
	p.ran = true
	reply, err = handler(p.inside(ctx), req)
	p.returned = true
	if x := p.exchange; x != nil {
		// Another service that refuses a call of the handler has the same status.
		p.ran = !p.refused.Load() || x.refusalIn(err) == nil
		if ctx.Err() != nil {
			p.interrupt()
		}
	}
	err, _ = lossOf(ctx, err)
	return reply, err
}

// inside returns the context of the handler. ctx is the one of its lease.
func (p *pass) inside(ctx context.Context) context.Context {
	if p.exchange == nil {
		return ctx
	}
	p.Context = ctx
	return p
}

// around returns how many passes of an exchange the call is in.
func (p *pass) around(x *exchange) (n int64) {
	for ; p != nil; p = p.outer {
		if p.exchange == x && !p.left.Load() {
			n++
		}
	}
	return n
}

// interrupt records that nobody knows how the call has ended behind the interceptor.
func (p *pass) interrupt() {
	if p.exchange != nil {
		p.exchange.broken.Store(true)
	}
}

// leave ends the pass.
func (p *pass) leave() {
	x := p.exchange
	if x == nil {
		return
	}
	if p.ran {
		x.ran.Store(true)
	}
	if p.ran && !p.returned {
		p.interrupt()
	}
	p.left.Store(true)
	x.inside.Add(-1)
}
