package core

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// seal returns the stored form of an answer of the record with this binding. It takes at most the time
// of WithSealTimeout. The error is a *sealFailure.
func (s *settings) seal(ctx context.Context, answer, binding []byte) ([]byte, error) {
	padded := pad(answer)
	if local, ok := s.sealer.(*AESSealer); ok {
		const overhead = 28 // the nonce and the tag
		return local.appendSealed(sealHead(local.current, len(padded)+overhead), padded, binding), nil
	}
	type made struct {
		keyID  string
		sealed []byte
	}
	got, err := limited(ctx, s.sealTimeout, func(ctx context.Context) (m made, err error) {
		if m.keyID, m.sealed, err = s.sealer.Seal(ctx, padded, binding); err == nil {
			err = checkKeyID(m.keyID)
		}
		if err == nil && len(m.sealed) == 0 {
			err = errNothingSealed
		}
		return m, err
	})
	if err != nil {
		return nil, newSealFailure("Seal", err)
	}
	return append(sealHead(got.keyID, len(got.sealed)), got.sealed...), nil
}

// An unopened says that this process cannot open a sealed answer. It is an ErrUnreplayable.
type unopened struct {
	keyID string
	err   error
}

func (e *unopened) Error() string {
	return fmt.Sprintf("an answer is sealed with the key %q: %v", e.keyID, e.err)
}

func (e *unopened) Unwrap() error { return e.err }

// open returns the answer of a sealed one. It takes at most the time of WithSealTimeout. The error is
// an *unopened or a *sealFailure.
func (s *settings) open(ctx context.Context, stored, binding []byte) (answer []byte, err error) {
	keyID, sealed, err := splitSealed(stored)
	if err == nil {
		answer, err = s.openPadded(ctx, keyID, sealed, binding)
	}
	if err == nil {
		answer, err = unpad(answer)
	}
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(err, ErrUnreplayable):
		return nil, &unopened{keyID, err}
	default:
		return nil, newSealFailure(fmt.Sprintf("Open with the key %q", keyID), err)
	}
}

// openPadded calls Open of the Sealer.
func (s *settings) openPadded(ctx context.Context, keyID string, sealed, binding []byte) ([]byte, error) {
	switch sealer := s.sealer.(type) {
	case nil:
		return nil, errNoSealer
	case *AESSealer:
		return sealer.Open(ctx, keyID, sealed, binding)
	default:
		return limited(ctx, s.sealTimeout, func(ctx context.Context) ([]byte, error) {
			return sealer.Open(ctx, keyID, sealed, binding)
		})
	}
}

// limited calls a method of a Sealer, and does not wait for it after the limit, or the end of ctx.
func limited[T any](ctx context.Context, limit time.Duration, call func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan result, 1)
	go func() {
		got := result{err: errSealerEnded}
		defer func() {
			if caught := recover(); caught != nil {
				got.err = fmt.Errorf("the Sealer panicked: %T", caught) // the value may contain the answer
			}
			done <- got
		}()
		value, err := call(ctx)
		got = result{value, err}
	}()
	select {
	case got := <-done:
		return got.value, got.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("no result within %v: %w", limit, ctx.Err())
	}
}

var (
	errNoSealer      error = &narrower{"this process has no WithSealer", ErrUnreplayable}
	errSealerEnded         = errors.New("the Sealer ended its goroutine")
	errNothingSealed       = errors.New("the Sealer returned nothing")
)
