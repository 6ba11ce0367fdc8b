package adapter

import "net/http"

// answers records that the middleware refuses the request, and answers from now on. So an answer
// that has begun before is another one. Without it, the middleware answers since newPass.
func (p *pass) answers() { p.set(func() { p.answered = p.in.recorder.hasAnswer() }) }

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
// while the middleware answered. Exception: nobody knows that if the framework keeps the answer.
func (p *pass) refused(refusal refused) {
	p.set(func() {
		refusal.begun = !p.answered && p.in.recorder.hasAnswer()
		if p.answered || len(refusal.body) == 0 && !p.in.recorder.hasAnswer() && !p.in.recorder.isHeld() {
			refusal.body = nil
		}
		p.reject(p.in, refusal)
	})
	for in := p.in.outer; in != nil; in = in.outer {
		in.mu.Lock()
		p.reject(in, refusal)
		in.mu.Unlock()
	}
}

// reject records a refusal in one inside, for a caller that holds its mutex.
func (p *pass) reject(in *inside, refusal refused) {
	if in.recorder.isClosed() {
		return
	}
	beside := in.entered // requests in other middlewares than this one and those around it
	for pass := p; pass != nil; pass = pass.outer {
		if pass.in != in || pass.isBase {
			continue
		}
		if pass != p || !p.ended { // a replay is of a request that has run, even if nobody can read the answer
			pass.rejected = true
		}
		if !pass.left {
			beside--
		}
	}
	in.late = in.late || in.ran || beside > 0
	in.ran = in.ran || refusal.status != 0 && !refusal.ends(refusal.status)
	in.note(refusal)
}

// refusedByKey is refused for a key that has answered by itself, with the status and with size bytes
// of body.
func (p *pass) refusedByKey(status, size int, err error) {
	refusal := refused{status: RefusalOf(err).HTTP, ours: true, err: err, cause: err}
	p.set(func() {
		if r := p.in.recorder; r != nil && !p.answered && r.status == status && len(r.body) == size {
			refusal.status, refusal.body = status, append([]byte{}, r.body...)
		}
	})
	p.refused(refusal)
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
