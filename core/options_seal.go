package core

import (
	"errors"
	"time"
)

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
