package adapter

import (
	"net/http"
)

// answers records that the middleware refuses the request, and answers from now on. So an answer
// that has begun before is another one. Without it, the middleware answers since newPass.
func (p *pass) answers() { p.set(func() { p.answered = p.recorder.hasAnswer() }) }

// refusedBy returns the answer of WriteRefusal.
func refusedBy(err error) refused {
	refusal := RefusalOf(err)
	body := Problem(refusal)
	if body == nil {
		body = []byte{}
	}
	return refused{status: refusal.HTTP, body: body, ours: true, cause: err}
}

// guard returns the writer for an error handler, which answers a request that the middleware
// refuses because of err. leave records its answer.
func (p *pass) guard(w http.ResponseWriter, err error) *Guard {
	return p.keep(newGuard(w, err))
}

// watch returns the writer for the ErrorHandler of a proxy.
func (p *pass) watch(w http.ResponseWriter) *Guard {
	return p.keep(newWatch(w))
}

// keep makes the Guard keep an answer that may be a refusal.
func (p *pass) keep(guard *Guard) *Guard {
	if p != nil {
		p.answers()
		guard.keep(maxRefusal)
	}
	return guard
}

// refused records that the middleware has refused the request.
//
// A refusal without bytes looks like many other answers. So it counts only if the answer has begun
// while the middleware answered.
func (p *pass) refused(refusal refused) { p.set(func() { p.refuse(refusal) }) }

// refuse is refused for a caller that holds the mutex of the Recorder.
func (p *pass) refuse(refusal refused) {
	r := p.recorder
	if r.closed {
		return
	}
	beside := r.inside // requests in other middlewares than this one and those around it
	for pass := p; pass.outer != nil; pass = pass.outer {
		pass.rejected = true
		if !pass.left {
			beside--
		}
	}
	r.late = r.late || r.ran || beside > 0
	r.ran = r.ran || !refusal.ours && refusal.status != 0 && !isClientError(refusal.status)
	if p.answered || len(refusal.body) == 0 && !r.hasAnswer() {
		refusal.body = nil
	}
	r.note(refusal)
}

// refusedByKey is refused for a key that has answered by itself, with the status and with size bytes
// of body.
func (p *pass) refusedByKey(status, size int, err error) {
	p.set(func() {
		r := p.recorder
		refusal := refused{status: RefusalOf(err).HTTP, ours: true, err: err, cause: err}
		if !p.answered && r.status == status && len(r.body) == size {
			refusal.status, refusal.body = status, append([]byte{}, r.body...)
		}
		p.refuse(refusal)
	})
}

// notSent records that the middleware is a proxy that has sent nothing to its service, and has
// answered on the Guard. The answer is a refusal if it has the status of a proxy.
func (p *pass) notSent(g *Guard) {
	refusal := g.refused(nil)
	refusal.ours = isGatewayError(refusal.status)
	p.refused(refusal)
}

// isGatewayError reports whether a status is that of a proxy that did not reach its service.
func isGatewayError(status int) bool {
	return http.StatusBadGateway <= status && status <= http.StatusGatewayTimeout
}
