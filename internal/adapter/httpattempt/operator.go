package httpattempt

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/keypart"
	"github.com/reqlock/reqlock/internal/adapter/record"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/answer"
)

// EndpointKey returns the key of the attempts at a request: see core.EndpointKey. See
// keypart.OfParts for the parts.
func EndpointKey(a registration.Adapter, method, route string, parts []string) (string, error) {
	switch {
	case route == "":
		return "", fmt.Errorf("reqlock: %s: EndpointKey: the route is empty", a)
	case method == "":
		return "", fmt.Errorf("reqlock: %s: EndpointKey: the method is empty", a)
	case strings.ContainsAny(method, "/ "):
		return "", fmt.Errorf("reqlock: %s: EndpointKey: %q is no method: the arguments are method, route, parts of the key", a, method)
	}
	key, err := keypart.OfParts(parts)
	if err != nil {
		return "", fmt.Errorf("reqlock: %s: EndpointKey: %w", a, err)
	}
	return core.EndpointKey(strings.ToUpper(method), route, key), nil
}

// PathEndpointKey is EndpointKey for a framework that writes a route as a path, without a
// method.
func PathEndpointKey(a registration.Adapter, method, path string, parts []string) (string, error) {
	if strings.Contains(path, " ") {
		return "", fmt.Errorf("reqlock: %s: EndpointKey: the route %q has a space: give the method alone, and the path as it was registered", a, path)
	}
	return EndpointKey(a, method, path, parts)
}

// Answer returns an answer as Run stores it: with the headers that a replay has. replayed
// names more of them, as Settings.ReplayedHeaders.
func Answer(a registration.Adapter, status int, header http.Header, body []byte, replayed []string) (core.Record, error) {
	if status < http.StatusOK || status > 999 {
		return core.Record{}, fmt.Errorf("reqlock: %s: Answer: %d is no status of an answer: use 200 to 999", a, status)
	}
	if len(body) > 0 && !hasBody(status) {
		return core.Record{}, fmt.Errorf("reqlock: %s: Answer: an answer with the status %d has no body", a, status)
	}
	for _, name := range replayed {
		if record.NeverReplayed(name) {
			return core.Record{}, fmt.Errorf("reqlock: %s: Answer: the header %q is never replayed", a, name)
		}
	}
	kept := record.Filter{}.Also(replayed...).Replayable(header)
	encoded := record.Encode(nil, record.Answer{Status: status, Header: kept, Body: body})
	return answer.New(encoded), nil
}
