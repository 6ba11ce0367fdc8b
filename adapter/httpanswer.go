package adapter

import (
	"context"
	"fmt"
	"maps"
	"net/http"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/internal/bridge"
)

// An HTTPAnswer is an answer as a client gets it.
type HTTPAnswer struct {
	Status int
	Header http.Header
	Body   []byte
}

// NewHTTPAnswer returns the answer for core.Answered of any HTTP framework: see
// nethttplock.NewAnswer, which describes the error.
func NewHTTPAnswer(n Name, a HTTPAnswer, replayed ...string) (core.Answer, error) {
	encoded, err := encode(a.Status, a.Header, a.Body, replayed)
	if err != nil {
		return core.Answer{}, n.Errorf("NewAnswer: %w", err)
	}
	return bridge.NewAnswer(encoded).(core.Answer), nil //nolint:forcetypeassert // see bridge
}

// encode encodes the answer of NewHTTPAnswer.
func encode(status int, header http.Header, body []byte, replayed []string) ([]byte, error) {
	if status < http.StatusOK || status > 999 {
		return nil, fmt.Errorf("%d is no status of an answer: use 200 to 999", status)
	}
	if len(body) > 0 && !hasBody(status) {
		return nil, fmt.Errorf("an answer with the status %d has no body", status)
	}
	for _, name := range replayed {
		if answer.NeverReplayed(name) {
			return nil, fmt.Errorf("the header %q is never replayed", name)
		}
	}
	kept := answer.Filter{}.Also(replayed...).Replayable(header)
	return answer.Encode(nil, answer.Answer{Status: status, Header: kept, Body: body}), nil
}

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
