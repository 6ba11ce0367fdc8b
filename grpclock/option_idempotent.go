package grpclock

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/protomsg"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/keytext"
)

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
// IdempotentUnaryServerInterceptor. It and core.WithFreeOnFailure are one setting: the later of
// the two counts.
func WithUnknown(unknown func(f Failure) bool) core.Option {
	return unknownSetting.Option(unknown)
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
func WithStored(stored func(codes.Code) bool) core.Option {
	return storedSetting.Option(stored)
}

// The settings of WithUnknown and WithStored.
var (
	unknownSetting = adapter.NewSetting[func(Failure) bool](self, "WithUnknown", adapter.ForIdempotent)
	storedSetting  = adapter.NewSetting[func(codes.Code) bool](self, "WithStored", adapter.ForIdempotent)
)

// idempotency holds the settings only for IdempotentUnaryServerInterceptor.
type idempotency struct {
	optional    func(*Call) bool            // reports whether a call has no key; nil means that the key is required
	fingerprint func(*Call) ([]byte, error) // its error is that of a key
	unknown     func(Failure) bool          // nil means the default
	stored      func(codes.Code) bool
}

// idempotencyOf returns the settings of a Locker.
func idempotencyOf(l *core.Locker) (idempotency, error) {
	set := bridge.SettingsOf(l)
	i := idempotency{fingerprint: fingerprintOf, stored: deterministic}
	if stored, isSet := storedSetting.Value(l); isSet {
		i.stored = stored
	}
	if set.FreeOnFailure {
		i.unknown = func(Failure) bool { return false }
	}
	if unknown, isSet := unknownSetting.Value(l); isSet {
		i.unknown = unknown
	}
	declared, _ := protomsg.Declared.Value(l)
	if names := set.OptionalKey; len(names) > 0 && !declared {
		i.optional = func(c *Call) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return hasMetadata(c, name) })
		}
	}
	own, err := registration.Fingerprint[*Call](self, l)
	if own != nil {
		i.fingerprint = func(c *Call) ([]byte, error) { return keytext.ReadFor("WithFingerprint()", "", c, own) }
	}
	return i, err
}

// hasMetadata reports whether a call has metadata of the name, even with an empty value.
func hasMetadata(c *Call, name string) bool {
	return len(metadata.ValueFromIncomingContext(c.ctx, name)) > 0
}
