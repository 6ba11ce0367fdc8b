package echolock

import (
	"github.com/reqlock/reqlock/internal/adapter/httpattempt"
)

// EndpointKey returns the key under which core.Locker.ReadRecord and core.Locker.Resolve find a
// request of an Idempotent, from what its client sent:
//
//	key, err := echolock.EndpointKey("POST", "/payments", "ada", "8e03978e-40d5-43e8")
//
// method is the method of the request. route is the path as it was registered, which is
// c.Path of the request. For the routes of Echo.Host, the host stands in front. A prefix that
// http.StripPrefix has removed stands in front, too.
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
	return httpattempt.PathEndpointKey(self, method, route, parts)
}
