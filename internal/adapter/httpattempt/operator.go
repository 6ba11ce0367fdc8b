package httpattempt

import (
	"fmt"
	"net/http"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/internal/bridge"
)

// NewAnswer returns an answer as Run stores it: with the headers that a replay has. replayed
// names more of them, as core.WithReplayedHeaders.
func NewAnswer(n adapter.Name, status int, header http.Header, body []byte, replayed []string) (core.Answer, error) {
	encoded, err := encode(status, header, body, replayed)
	if err != nil {
		return core.Answer{}, fmt.Errorf("reqlock: %s: NewAnswer: %w", n, err)
	}
	return bridge.NewAnswer(encoded).(core.Answer), nil //nolint:forcetypeassert // see bridge
}

// encode encodes the answer of NewAnswer.
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
