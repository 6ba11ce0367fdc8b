package grpclock

import (
	"context"

	"google.golang.org/grpc"
)

// A pass is a call on its way through an interceptor inside an exchange, which lets the call run
// or refuses it. The exchange learns which. The interceptor calls enter, and leave in each case.
type pass struct {
	exchange *exchange // nil if the call is in none
	ran      bool      // the handler behind the interceptor may have had its effect
	returned bool      // it has returned
}

// enter begins the pass of a call with the context.
func enter(ctx context.Context) pass {
	x := exchangeOf(ctx)
	if x != nil {
		x.inside.Add(1)
	}
	return pass{exchange: x}
}

// run runs the handler of a call. ctx is the context of its lease. The error is the one for the
// client. If it is a refusal of an interceptor inside, the handler has not run.
func (p *pass) run(ctx context.Context, req any, handler grpc.UnaryHandler) (reply any, err error) {
	p.ran = true
	before := p.refusals()
	reply, err = handler(ctx, req)
	p.returned = true
	if x := p.exchange; x != nil {
		// Another service that refuses a call of the handler has the same status.
		p.ran = p.refusals() == before || !x.isRefusal(err)
		if ctx.Err() != nil {
			p.interrupt()
		}
	}
	err, _ = lossOf(ctx, err)
	return reply, err
}

// refusals returns how many refusals there have been in the exchange.
func (p *pass) refusals() int64 {
	if p.exchange == nil {
		return 0
	}
	return p.exchange.given.Load()
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
	x.inside.Add(-1)
}
