package core

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// EndpointKey returns the key that the Idempotent middlewares give to Begin. ReadRecord and
// Resolve take it. It is for an adapter of your own: the functions EndpointKey of the adapters
// make the key from what a client has sent. For HTTP, the arguments are the method, the pattern
// of the route as the framework writes it, and the key that the middleware's Key reads.
// For gRPC they are "", the full method, and the key.
//
// The result is a digest. So the client's key cannot be read by accident in Redis, and the
// same key on two endpoints makes two keys.
func EndpointKey(method, route, key string) string {
	digest := sha256.New()
	for _, part := range [...]string{"1", method, route, key} {
		fmt.Fprintf(digest, "%d:%s", len(part), part)
	}
	return base64.RawURLEncoding.EncodeToString(digest.Sum(nil))
}
