package grpclock

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// WithOptionalKey runs calls that lack the named metadata as if there were no
// interceptor; "idempotency-key" if no name is given. Where one of several is
// there, whatever is in it, the key function is asked, and a call for which it
// has no key is refused. An empty name panics.
//
// It is an option of IdempotentUnaryServerInterceptor.
func WithOptionalKey(names ...string) Option {
	adapter.Must(!slices.Contains(names, ""), "WithOptionalKey got an empty name")
	if len(names) == 0 {
		names = []string{"idempotency-key"}
	}
	names = slices.Clone(names)
	return idempotencyOption("WithOptionalKey", func(i *idempotency) { i.optional = names })
}

// WithFingerprint sets what tells calls apart that come with the same key by
// mistake. fingerprint returns a few bytes, such as a digest of the fields that
// count. An error refuses the call as one of a key function does.
//
// Without it, that is a SHA-256 of the message's type and of its bytes in
// protobuf's deterministic form, whose maps are in order; the bytes of fields that
// the program does not know count too. Protobuf promises that form only within
// one build. A deploy that changes the message, or protobuf, can refuse a copy of
// an earlier call with MISMATCH; a fingerprint of your own, or none, avoids it. A
// message that is no proto.Message needs one too: else its calls are refused with
// INTERNAL. To set another fingerprint refuses copies of the calls before.
//
// It is an option of IdempotentUnaryServerInterceptor. A nil fingerprint panics.
func WithFingerprint(fingerprint func(c *Call) ([]byte, error)) Option {
	adapter.Must(fingerprint != nil, "WithFingerprint needs a function")
	return idempotencyOption("WithFingerprint", func(i *idempotency) { i.fingerprint = fingerprint })
}

// WithoutFingerprint tells no calls of a method apart that come with the same
// key: one with another message gets the answer of the first. See
// WithFingerprint. It is an option of IdempotentUnaryServerInterceptor.
func WithoutFingerprint() Option {
	return idempotencyOption("WithoutFingerprint", func(i *idempotency) { i.fingerprint = noFingerprint })
}

// WithStored sets which answers are stored, by their code. Calls that end with
// another one free their key, and the next copy runs. Without it these are OK,
// INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION, OUT_OF_RANGE
// and UNIMPLEMENTED. The code is the one that is sent: an error without a status is
// UNKNOWN, and the end of a context CANCELED or DEADLINE_EXCEEDED.
//
// A handler can decide otherwise, see core.Attempt.Decide. What an interceptor of
// this package refused behind this one is never stored by its code. stored must
// be safe for concurrent use.
//
// It is an option of IdempotentUnaryServerInterceptor. A nil stored panics.
func WithStored(stored func(codes.Code) bool) Option {
	adapter.Must(stored != nil, "WithStored needs a function")
	return idempotencyOption("WithStored", func(i *idempotency) { i.stored = stored })
}

// idempotency is what only IdempotentUnaryServerInterceptor is made of.
type idempotency struct {
	given       string   // the last option of it, for who has no use for them
	optional    []string // nil: the key is required
	fingerprint func(*Call) ([]byte, error)
	stored      func(codes.Code) bool
}

// idempotencyOption makes an option of the name.
func idempotencyOption(name string, set func(*idempotency)) Option {
	return option(func(c *config) {
		c.given = name
		set(&c.idempotency)
	})
}

// mayRunWithoutKey reports whether a call lacks a key that it need not have.
func (i *idempotency) mayRunWithoutKey(ctx context.Context) bool {
	return i.optional != nil && !slices.ContainsFunc(i.optional, func(name string) bool {
		return len(metadata.ValueFromIncomingContext(ctx, name)) > 0
	})
}
