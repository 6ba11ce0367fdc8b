package httpattempt

import (
	"net/http"

	"github.com/reqlock/reqlock/internal/adapter/httpreply"
)

// Answers records that the middleware refuses the request, and answers from now on. So an answer
// that has begun before is another one. Without Answers, the middleware answers since Enter.
func (p *Pass) Answers() { p.set(func() { p.answered = p.recorder.hasAnswer() }) }

// Refuse answers as httpreply.Write a request that the middleware refuses because of err.
func (p *Pass) Refuse(w http.ResponseWriter, err error) {
	p.Answers()
	httpreply.Write(w, err)
	if p != nil {
		p.Refused(RefusalOf(err))
	}
}

// RefusalOf returns the Refusal that httpreply.Write answers with.
func RefusalOf(err error) Refusal {
	o := httpreply.RefusalOf(err)
	body := []byte{}
	if httpreply.HasBody(o) {
		body = httpreply.Body(o)
	}
	return Refusal{Status: o.HTTP, Body: body, Ours: true, Cause: err}
}

// Guard returns the writer for an error handler, which answers a request that the middleware
// refuses because of err.
func (p *Pass) Guard(w http.ResponseWriter, err error) *httpreply.Guard {
	return p.keep(httpreply.NewGuard(w, err))
}

// Watch returns the writer for the ErrorHandler of a proxy.
func (p *Pass) Watch(w http.ResponseWriter) *httpreply.Guard {
	return p.keep(httpreply.NewWatch(w))
}

// keep makes the Guard keep an answer that may be a refusal.
func (p *Pass) keep(guard *httpreply.Guard) *httpreply.Guard {
	if p != nil {
		p.Answers()
		guard.Keep(MaxRefusal)
	}
	return guard
}

// RefusalBy returns the Refusal that an error handler has answered with on the Guard.
func RefusalBy(g *httpreply.Guard, err error) Refusal {
	status, body, ours := g.Answer()
	return Refusal{Status: status, Body: body, Ours: ours, Cause: err}
}

// Refused records that the middleware has refused the request.
//
// A Refusal without bytes looks like many other answers. So it counts only if the answer has begun
// while the middleware answered.
func (p *Pass) Refused(refusal Refusal) { p.set(func() { p.refuse(refusal) }) }

// refuse is Refused for a caller that holds the mutex of the Recorder.
func (p *Pass) refuse(refusal Refusal) {
	r := p.recorder
	if r.closed {
		return
	}
	beside := r.inside // requests in other middlewares than this one and those around it
	for pass := p; pass.outer != nil; pass = pass.outer {
		pass.refused = true
		if !pass.left {
			beside--
		}
	}
	r.late = r.late || r.ran || beside > 0
	r.ran = r.ran || !refusal.Ours && refusal.Status != 0 && !isClientError(refusal.Status)
	if p.answered || len(refusal.Body) == 0 && !r.hasAnswer() {
		refusal.Body = nil
	}
	r.note(refusal)
}

// RefusedByKey is Refused for a key that has answered itself, with the status and with
// size bytes of body.
func (p *Pass) RefusedByKey(status, size int, err error) {
	p.set(func() {
		r := p.recorder
		refusal := Refusal{Status: httpreply.RefusalOf(err).HTTP, Ours: true, Err: err, Cause: err}
		if !p.answered && r.status == status && len(r.body) == size {
			refusal.Status, refusal.Body = status, append([]byte{}, r.body...)
		}
		p.refuse(refusal)
	})
}

// NotSent records that the middleware is a proxy that has sent nothing to its service, and has
// answered on the Guard. The answer is a refusal if it has the status of a proxy.
func (p *Pass) NotSent(g *httpreply.Guard) {
	refusal := RefusalBy(g, nil)
	refusal.Ours = isGatewayError(refusal.Status)
	p.Refused(refusal)
}

// isGatewayError reports whether a status is that of a proxy that did not reach its service.
func isGatewayError(status int) bool {
	return http.StatusBadGateway <= status && status <= http.StatusGatewayTimeout
}
