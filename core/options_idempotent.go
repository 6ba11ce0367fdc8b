package core

import (
	"errors"
	"maps"
	"slices"

	"github.com/reqlock/reqlock/internal/bridge"
)

// WithOptionalKey lets requests that have no key run as without Idempotent: off if not set. Such a
// request has none of the named headers, or none of the named metadata if it is a call. If no name
// is given, the name is Idempotency-Key. A request with one of the names, even with an empty
// value, but without a usable key is still refused. An empty name is an error. Middlewares that
// only lock refuse the option.
//
// A gateway in front of the server must pass the key on: grpc-gateway drops the header
// Idempotency-Key by default, and then each copy of a call runs.
func WithOptionalKey(names ...string) Option {
	return ofIdempotent("WithOptionalKey", func(s *bridge.Settings) error {
		if slices.Contains(names, "") {
			return errors.New("reqlock: WithOptionalKey: a name is empty")
		}
		s.OptionalKey = []string{"Idempotency-Key"}
		if len(names) > 0 {
			s.OptionalKey = slices.Clone(names)
		}
		return nil
	})
}

// WithFreeOnFailure lets the next request with the key run after a failed one. It equals WithUnknown
// with a function that returns false, also the WithUnknown of an RPC adapter: of these options the
// last one counts. Take WithFreeOnFailure if every effect of the handlers rolls back when they
// fail, as in one database transaction; otherwise leave it out, or a retry after a failure may
// charge twice. Middlewares that only lock refuse the option.
func WithFreeOnFailure() Option {
	return ofIdempotent("WithFreeOnFailure", func(s *bridge.Settings) error {
		s.Unknown, s.FreeOnFailure = func(Failure) bool { return false }, true
		s.Own = maps.Clone(s.Own)
		maps.DeleteFunc(s.Own, func(own bridge.OwnOption, _ any) bool { return own.Option == "WithUnknown" })
		return nil
	})
}

// WithFingerprint sets the function that distinguishes different requests with the same key. R is
// the type of the adapter's requests: *http.Request, *gin.Context, echo.Context, fiber.Ctx or
// *grpclock.Call. The middleware of another adapter panics, unless WithoutFingerprint comes later.
//
// If not set, the fingerprint of an HTTP request is SHA-256 over path, query, media type and body.
// Use WithFingerprint if a client may encode a copy differently, or if the body is large or was
// read before. The page [fingerprints] describes the default. With WithFingerprint, Idempotent does
// not read the body. If fingerprint reads the body, it must put one back for the handler.
//
// If not set, the fingerprint of a gRPC call is SHA-256 over the type of its message and its bytes
// in protobuf's deterministic form, with sorted maps and with the bytes of unknown fields. Protobuf
// guarantees that form only within one build. After a deploy that changes the message or protobuf,
// a copy of an earlier call can be refused with MISMATCH; a fingerprint of your own, or
// WithoutFingerprint, avoids that. A message that is not a proto.Message needs one of the two:
// otherwise its calls are refused with INTERNAL.
//
// fingerprint should return few bytes, such as a digest of the relevant fields. Its error refuses
// the request as an error of a Key does. It must be safe for concurrent use. If you change the
// fingerprint, copies of earlier requests are refused. A nil fingerprint is an error. Middlewares
// that only lock refuse the option.
//
// [fingerprints]: https://github.com/reqlock/reqlock/blob/main/docs/replays.md#fingerprints
func WithFingerprint[R any](fingerprint func(R) ([]byte, error)) Option {
	return ofIdempotent("WithFingerprint", func(s *bridge.Settings) error {
		s.Fingerprint, s.NoFingerprint = fingerprint, false
		return notNil("WithFingerprint", fingerprint == nil)
	})
}

// WithoutFingerprint treats all requests with the same endpoint and key as copies: a request with
// another body gets the first answer. The body is not read. See WithFingerprint. Middlewares that
// only lock refuse the option.
func WithoutFingerprint() Option {
	return ofIdempotent("WithoutFingerprint", func(s *bridge.Settings) error {
		s.Fingerprint, s.NoFingerprint = nil, true
		return nil
	})
}

// ofIdempotent returns an option of the adapters that has an effect on idempotent requests only.
func ofIdempotent(name string, set func(*bridge.Settings) error) Option {
	return ofAttempts(name, ofRequests(set))
}

// ofRequests returns an option that sets what only the adapters use.
func ofRequests(set func(*bridge.Settings) error) option {
	return func(s *settings) error { return set(&s.requests) }
}

// setOwn returns an option that sets a value of an adapter.
func setOwn(own bridge.OwnOption, set func(old any) any) option {
	return ofRequests(func(s *bridge.Settings) error {
		values := maps.Clone(s.Own) // which the Locker of a view also has
		if values == nil {
			values = make(map[bridge.OwnOption]any)
		}
		values[own] = set(values[own])
		s.Own = values
		return nil
	})
}
