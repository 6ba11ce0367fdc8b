package core

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/reqlock/reqlock/internal/keytext"
)

// EndpointKey returns the key under which ReadRecord and Resolve find a request of an Idempotent
// middleware, from what its client sent:
//
//	key, err := core.EndpointKey("POST", "POST /payments", "ada", "8e03978e-40d5-43e8") // net/http
//	key, err := core.EndpointKey("POST", "/payments", "ada", "8e03978e-40d5-43e8")      // Gin, Echo, Fiber
//	key, err := core.EndpointKey("", "/bank.Bank/Transfer", "ada", "8e03978e-40d5-43e8") // gRPC
//
// method is the method of the HTTP request, and route the route as the framework reports it: the
// pattern exactly as the mux of net/http got it, with its method, or the path as Gin, Echo and
// Fiber got it, or the full method of an RPC. EndpointKey cannot check the route and the parts: with
// another one, ReadRecord and Resolve return ErrNotFound, although the request may have happened.
//
// If a pattern of net/http has a method, method may be "". A pattern of net/http that ends in a
// slash is followed by a space and the path. A prefix that http.StripPrefix has removed stands
// directly before the route; then method is needed.
//
// parts are the values that the Key read from the request: one value, or one for each argument of
// Join, in that order. A part in double quotes is read as a quoted Idempotency-Key, whichever part
// it is, and counts without its quotes. For a Key with Named around one value, the part is the
// name, a colon and the value; for Hashed and HMAC, it is the digest. For a Join with a name, the
// only part is the name, a colon and the joined key.
//
// The result is a digest, which the log line of an unknown outcome has in full. So the client's key
// cannot be read by accident in Redis, and the same key on two endpoints makes two keys. The error
// says which argument is wrong. It is ErrNoKey for an empty part, and ErrInvalidKey for a malformed
// Idempotency-Key.
func EndpointKey(method, route string, parts ...string) (string, error) {
	if own, _, found := strings.Cut(route, " "); found && !strings.Contains(own, "/") {
		if method != "" && !strings.EqualFold(method, own) {
			return "", fmt.Errorf("reqlock: EndpointKey: the pattern %q has another method than %q", route, method)
		}
		method = own
	}
	switch {
	case route == "":
		return "", fmt.Errorf("reqlock: EndpointKey: the route is empty")
	case method == "" && !isFullMethod(route):
		return "", fmt.Errorf("reqlock: EndpointKey: the method is empty, and %q is no full method of an RPC, such as /bank.Bank/Transfer", route)
	case strings.ContainsAny(method, "/ "):
		return "", fmt.Errorf("reqlock: EndpointKey: %q is no method: the arguments are method, route, parts of the key", method)
	}
	key, err := keytext.OfParts(parts)
	if err != nil {
		return "", fmt.Errorf("reqlock: EndpointKey: %w", err)
	}
	return endpointKey(strings.ToUpper(method), route, key), nil
}

// isFullMethod reports whether a route has the form of a full method of an RPC.
func isFullMethod(route string) bool {
	return strings.HasPrefix(route, "/") && strings.Count(route, "/") == 2 && !strings.HasSuffix(route, "/")
}

// endpointKey returns the key of the attempts at a request whose Key has read this key.
func endpointKey(method, route, key string) string {
	digest := sha256.New()
	for _, part := range [...]string{"1", method, route, key} {
		fmt.Fprintf(digest, "%d:%s", len(part), part)
	}
	return base64.RawURLEncoding.EncodeToString(digest.Sum(nil))
}
