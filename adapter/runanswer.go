package adapter

import (
	"context"
	"maps"
	"net/http"
)

// RunAnswer is Run for a framework without net/http, which keeps the answer of a handler until the
// handler has returned. handler returns that answer, and the adapter sends it after RunAnswer. If its
// Status is 0, the handler has set none: that is 200 for a body, and otherwise no answer. ctx is the
// context of the Entry. before is the header of the answer before the handler: what outer middlewares
// have set is not stored. Names of headers are canonical. If handler panics, it reports the status that
// it has set by SetStatus.
func (x *Exchange) RunAnswer(ctx context.Context, before http.Header, handler func(context.Context) HTTPAnswer) error {
	r := (&http.Request{Body: http.NoBody}).WithContext(ctx)
	outer := held{}
	maps.Copy(outer, before)
	return x.Run(outer, r, func(w *Recorder, r *http.Request) {
		w.held = true
		answer := handler(r.Context())
		clear(w.Header())
		maps.Copy(w.Header(), answer.Header)
		if answer.Status != 0 {
			w.WriteHeader(answer.Status)
		}
		if len(answer.Body) > 0 {
			_, _ = w.Write(answer.Body) // an error says that the status has no body, or less
		}
	})
}

// held is the writer of an answer that a framework sends by itself.
type held http.Header

// Header returns the header before the handler, which the Recorder changes.
func (h held) Header() http.Header { return http.Header(h) }

// Write does nothing.
func (held) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader does nothing.
func (held) WriteHeader(int) {}
