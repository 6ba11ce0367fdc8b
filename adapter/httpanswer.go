package adapter

import (
	"fmt"
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
