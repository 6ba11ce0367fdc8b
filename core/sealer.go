package core

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Sealer encrypts the answers of idempotent requests before they leave the process, and opens them
// for copies: see WithSealer. NewAESSealer returns one whose keys are in memory. Implement Sealer for
// a key management service (KMS).
//
// The id of the key is stored beside the sealed answer as plain text, and appears in errors and events.
// binding has 32 bytes, which name the record: its key, its fingerprint and the format. Give it to the
// encryption as additional data (or as a part of the encryption context of a KMS), so that an answer
// that somebody moved to another record does not open.
//
// ctx has the values of the request's context, except for a commit that goes on (see Attempt.Commit), and
// ends after the time of WithSealTimeout. reqlock does not wait longer, but a method that ignores the end
// of ctx keeps its goroutine, and each further call gets another one. The text of an error gets into events
// and logs, so it must contain neither the answer nor a key. A panic counts as an error.
//
// The methods must be safe for concurrent use, and must not change their arguments.
type Sealer interface {
	// Seal encrypts an answer, and returns the id of the key, of 1 to 255 bytes. An error counts as a
	// commit that failed, and so do no bytes: see Attempt.Commit.
	Seal(ctx context.Context, answer, binding []byte) (keyID string, sealed []byte, err error)
	// Open returns the answer that Seal has encrypted. If the key id is not known, or the
	// authentication fails, so that another try does not help, the error is or wraps ErrUnreplayable,
	// and a copy gets ErrUnreplayable. After any other error a copy gets ErrUnavailable.
	Open(ctx context.Context, keyID string, sealed, binding []byte) (answer []byte, err error)
}

// WithSealer encrypts the answers of idempotent requests, and those of Resolve, before they leave the
// process: none if not set, and answers are stored as they are. Copies get the opened answer. Answers
// are padded to a multiple of 256 bytes, and a little longer in Redis than that.
//
//   - An answer that cannot be sealed within the time of WithSealTimeout counts as a commit that
//     failed: see Attempt.Commit. The lease is renewed while the answer is sealed.
//   - If the Sealer is away or too slow for a copy, the copy gets ErrUnavailable with a RetryAfter.
//   - If the answer does not open, because this process lacks the key or a Sealer, or the
//     authentication fails, the copy gets ErrUnreplayable. A Warned event, one for each name and key,
//     and each Refused event have the id of the key.
//   - An answer that was stored without a Sealer is replayed as it is, so that processes with and
//     without the option can run side by side. A process without it cannot open sealed answers.
//
// A request whose answer does not open does not run again. One whose answer was not sealed is a request
// whose commit failed: with WithRerunUnknown another process may run it. A nil sealer is an error. Middlewares
// that only lock refuse the option.
func WithSealer(sealer Sealer) Option {
	return ofAttempts("WithSealer", func(s *settings) error {
		local, isLocal := sealer.(*AESSealer)
		if sealer == nil || isLocal && (local == nil || local.keys == nil) {
			return errors.New("reqlock: WithSealer: the sealer is nil or empty: make one with NewAESSealer")
		}
		s.sealer = sealer
		return nil
	})
}

// WithSealTimeout limits each call of the Sealer of WithSealer: 1 s if not set, at least 1 ms, at most
// 1 m. A commit and a copy wait no longer for their answer. It has no effect on an AESSealer.
// Middlewares that only lock refuse the option.
func WithSealTimeout(d time.Duration) Option {
	return ofAttempts("WithSealTimeout", func(s *settings) error {
		s.sealTimeout = d
		return within("WithSealTimeout", d, minCommandTimeout, maxSealTimeout)
	})
}

// errSealer is the kind of error of a Sealer that is away or too slow.
var errSealer error = &narrower{"reqlock: the sealer of answers is unavailable", ErrUnavailable}

// A sealFailure is why an answer could not be sealed or opened now.
type sealFailure struct{ err error }

func (e *sealFailure) Error() string { return e.err.Error() }

func (e *sealFailure) Unwrap() error { return e.err }

// newSealFailure returns the failure of a method of a Sealer. It never unwraps to an error of package
// context, because such an error would say that the context of the caller has ended, nor to one of this
// package, whose refusal the request would get.
func newSealFailure(method string, err error) *sealFailure {
	_, isRefusal := answerTo(err)
	if isRefusal || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		err = errors.New(err.Error())
	}
	return &sealFailure{fmt.Errorf("%s: %w", method, err)}
}

// unavailable returns the *Error for a fault of Redis, or of the Sealer.
func unavailable(fault error) *Error {
	var failed *sealFailure
	if errors.As(fault, &failed) {
		return &Error{Kind: errSealer, Cause: failed.err}
	}
	return &Error{Kind: ErrUnavailable, Cause: fault}
}
