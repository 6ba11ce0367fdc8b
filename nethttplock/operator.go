package nethttplock

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
)

// EndpointKey returns the key under which core.Locker.ReadRecord and core.Locker.Resolve find a
// request of an Idempotent, from what its client sent:
//
//	key, err := nethttplock.EndpointKey("POST", "POST /payments", "ada", "8e03978e-40d5-43e8")
//
// method is the method of the request. route is the pattern as it was registered, with its
// method if it has one; then method may be "". If the pattern ends in a slash, or if there is
// none, see Idempotent for the route. A pattern that ends in a slash is followed by a space and
// the path. A prefix that http.StripPrefix has removed stands directly before the pattern, as
// in "/apiPOST /payments"; then method is needed.
//
// parts are the values that the key read from the request: one value, or one for each
// argument of core.Join, in that order. An Idempotency-Key may have its quotes, as the client
// sent it. For Key.Named, the part is the name, a colon and the value; for Key.Hashed and
// Key.HMAC, it is the digest. The log line of an unknown outcome has the whole key, so that
// EndpointKey is not needed there.
//
// The error says which argument is wrong. It is core.ErrNoKey for an empty part, and
// core.ErrInvalidKey for a malformed Idempotency-Key.
func EndpointKey(method, route string, parts ...string) (string, error) {
	if own, _, found := strings.Cut(route, " "); found && !strings.Contains(own, "/") {
		if method != "" && !strings.EqualFold(method, own) {
			return "", fmt.Errorf("reqlock: %s: EndpointKey: the pattern %q has another method than %q", self, route, method)
		}
		method = own
	}
	return httpattempt.EndpointKey(self, method, route, parts)
}

// NewAnswer returns an answer for core.Answered, for a route of any HTTP framework, with which an operator ends the unknown outcome
// of a request. Copies of the request get the answer as if a handler had given it: a header
// that an Idempotent does not replay is left out. replayed are the names that the route has in
// core.WithReplayedHeaders. The caller may change header and body afterwards.
//
// The error says which argument is wrong: a status that is not of 200 to 999, a body with a
// status that has none, or a name that is never replayed.
func NewAnswer(status int, header http.Header, body []byte, replayed ...string) (core.Answer, error) {
	return httpattempt.NewAnswer(self, status, header, body, replayed)
}
