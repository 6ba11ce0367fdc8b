package grpclock

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/internal/adapter/keypart"
)

// WithOptionalKey lets calls that have no key run as without the interceptor: off if
// not set. Such a call has no metadata of any of the names. If no name is given, the
// name is "idempotency-key". If a call has a name, even with an empty value, the key
// function is called, and a call without a key is refused. An empty name panics.
//
// A gateway in front of the server must pass the key on: grpc-gateway drops the header
// Idempotency-Key by default, and then each copy of a call runs.
//
// It is an option only for IdempotentUnaryServerInterceptor.
func WithOptionalKey(names ...string) Option {
	adapter.Must(!slices.Contains(names, ""), "WithOptionalKey got an empty name")
	if len(names) == 0 {
		names = []string{"idempotency-key"}
	}
	names = slices.Clone(names)
	hasNone := func(c *Call) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return hasMetadata(c, name) })
	}
	return idempotencyOption("WithOptionalKey", func(i *idempotency) { i.optional = hasNone })
}

// WithFingerprint sets the function that distinguishes different calls with the same
// key: SHA-256 over the type and the bytes of the message if not set. fingerprint
// should return few bytes, such as a digest of the relevant fields. Its error refuses
// the call as an error of a KeyFunc does. It must be safe for concurrent use.
//
// The default hashes the type of the message and its bytes in protobuf's deterministic
// form, with sorted maps and with the bytes of unknown fields. Protobuf guarantees that
// form only within one build. After a deploy that changes the message or protobuf, a
// copy of an earlier call can be refused with MISMATCH; a fingerprint of your own, or
// WithoutFingerprint, avoids that. A message that is not a proto.Message needs
// WithFingerprint or WithoutFingerprint: otherwise its calls are refused with INTERNAL.
// If you change the fingerprint, copies of earlier calls are refused.
//
// A nil fingerprint panics. WithFingerprint is an option only for
// IdempotentUnaryServerInterceptor.
func WithFingerprint(fingerprint func(c *Call) ([]byte, error)) Option {
	adapter.Must(fingerprint != nil, "WithFingerprint needs a function")
	named := func(c *Call) ([]byte, error) { return keypart.ReadFor("WithFingerprint()", "", c, fingerprint) }
	return idempotencyOption("WithFingerprint", func(i *idempotency) { i.fingerprint = named })
}

// WithoutFingerprint treats all calls with the same method and key as copies: a call
// with another message gets the first answer. See WithFingerprint. WithoutFingerprint
// is an option only for IdempotentUnaryServerInterceptor.
func WithoutFingerprint() Option {
	return idempotencyOption("WithoutFingerprint", func(i *idempotency) { i.fingerprint = noFingerprint })
}

// WithUnknown sets which failures leave the outcome of a call unknown, so that copies
// are refused with core.ErrOutcomeUnknown. The default is a panic, an error that is or wraps
// a timeout, and all codes that are not stored by default except
// PERMISSION_DENIED, ABORTED and UNAUTHENTICATED, unless WithStored stores them. All
// others free the key or are stored: see WithStored. core.WithRerunUnknown can let copies
// run instead.
//
// unknown is called for a handler that has decided nothing (core.Attempt.Decide), and
// that has panicked or returned another code than OK. It is not called if the call ends
// with the refusal of an interceptor of this package behind this one, unless the call has
// run as well. unknown must be safe for concurrent use. If unknown panics, the outcome
// is unknown.
//
// A nil unknown panics. WithUnknown is an option only for
// IdempotentUnaryServerInterceptor.
func WithUnknown(unknown func(f Failure) bool) Option {
	adapter.Must(unknown != nil, "WithUnknown needs a function")
	return idempotencyOption("WithUnknown", func(i *idempotency) { i.unknown = unknown })
}

// FreeOnFailure lets the next call with the key run after a failed one. It equals
// WithUnknown with a function that returns false. Take FreeOnFailure if every effect
// of the handlers rolls back when they fail, as in one database transaction; otherwise
// leave it out, or a retry after a failure may charge twice.
//
// FreeOnFailure is an option only for IdempotentUnaryServerInterceptor.
func FreeOnFailure() Option {
	never := func(Failure) bool { return false }
	return idempotencyOption("FreeOnFailure", func(i *idempotency) { i.unknown = never })
}

// WithStored sets which answers are stored, by their code. An answer that is not
// stored frees the key, so that the next call with the key runs. Exception: the answers
// of WithUnknown, which is asked first. The default stores OK, INVALID_ARGUMENT,
// NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION, OUT_OF_RANGE and UNIMPLEMENTED. The
// code is the one that is sent: an error without a status is UNKNOWN, and the end of a
// context is CANCELED or DEADLINE_EXCEEDED.
//
// A refusal by an interceptor of this package behind this one, with which the call ends,
// is not stored. A handler can decide otherwise, see core.Attempt.Decide. stored must be
// safe for concurrent use. If stored panics, the outcome is unknown.
//
// A nil stored panics. WithStored is an option only for
// IdempotentUnaryServerInterceptor.
func WithStored(stored func(codes.Code) bool) Option {
	adapter.Must(stored != nil, "WithStored needs a function")
	return idempotencyOption("WithStored", func(i *idempotency) { i.stored = stored })
}

// idempotency holds the settings only for IdempotentUnaryServerInterceptor.
type idempotency struct {
	given       string                      // the name of the last option; other interceptors refuse it
	optional    func(*Call) bool            // reports whether a call has no key; nil means that the key is required
	fingerprint func(*Call) ([]byte, error) // its error is that of a key function
	unknown     func(Failure) bool          // nil means the default
	stored      func(codes.Code) bool
}

// idempotencyOption returns an option that only IdempotentUnaryServerInterceptor
// accepts.
func idempotencyOption(name string, set func(*idempotency)) Option {
	return option(name, func(c *config) {
		c.given = name
		set(&c.idempotency)
	})
}

// hasMetadata reports whether a call has metadata of the name, even with an empty value.
func hasMetadata(c *Call, name string) bool {
	return len(metadata.ValueFromIncomingContext(c.ctx, name)) > 0
}
