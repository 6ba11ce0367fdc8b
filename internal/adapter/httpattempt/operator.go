package httpattempt

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/keypart"
	"github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/internal/bridge"
)

// EndpointKey returns the key of the attempts at a request: see core.EndpointKey. See
// keypart.OfParts for the parts.
func EndpointKey(n adapter.Name, method, route string, parts []string) (string, error) {
	switch {
	case route == "":
		return "", fmt.Errorf("reqlock: %s: EndpointKey: the route is empty", n)
	case method == "":
		return "", fmt.Errorf("reqlock: %s: EndpointKey: the method is empty", n)
	case strings.ContainsAny(method, "/ "):
		return "", fmt.Errorf("reqlock: %s: EndpointKey: %q is no method: the arguments are method, route, parts of the key", n, method)
	}
	key, err := keypart.OfParts(parts)
	if err != nil {
		return "", fmt.Errorf("reqlock: %s: EndpointKey: %w", n, err)
	}
	return core.EndpointKey(strings.ToUpper(method), route, key), nil
}

// PathEndpointKey is EndpointKey for a framework that writes a route as a path, without a
// method.
func PathEndpointKey(n adapter.Name, method, path string, parts []string) (string, error) {
	if strings.Contains(path, " ") {
		return "", fmt.Errorf("reqlock: %s: EndpointKey: the route %q has a space: give the method alone, and the path as it was registered", n, path)
	}
	return EndpointKey(n, method, path, parts)
}

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
