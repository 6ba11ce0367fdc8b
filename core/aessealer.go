package core

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"log/slog"
)

// An AESSealer is a Sealer with keys in memory. It encrypts by AES-256 in Galois/Counter mode with
// random nonces (crypto/cipher.NewGCMWithRandomNonce). It is safe for concurrent use, and prints
// without its keys.
type AESSealer struct {
	current string
	keys    map[string]cipher.AEAD
}

// aesKeyLen is the length of a key of AES-256.
const aesKeyLen = 32

// NewAESSealer returns a Sealer that seals with the key whose id is current, and opens what any of the
// keys has sealed. Each key has 32 random bytes, and an id of 1 to 255 bytes, which is no secret:
//
//	sealer, err := core.NewAESSealer("2026-11", map[string][]byte{"2026-11": key, "2026-08": old})
//
// To rotate keys, first give the new key to each process, beside the current one; then make it the
// current one; and remove the old one after the time of WithRetention. A key is for at most 2^32
// answers. The keys are copied. The error names the id of a wrong key.
func NewAESSealer(current string, keys map[string][]byte) (*AESSealer, error) {
	s := &AESSealer{current, make(map[string]cipher.AEAD, len(keys))}
	for id, key := range keys {
		if err := checkKeyID(id); err != nil {
			return nil, fmt.Errorf("reqlock: NewAESSealer: %w", err)
		}
		if len(key) != aesKeyLen {
			return nil, fmt.Errorf("reqlock: NewAESSealer: the key %q has %d bytes, and needs %d", id, len(key), aesKeyLen)
		}
		block, err := aes.NewCipher(key)
		if err == nil {
			s.keys[id], err = cipher.NewGCMWithRandomNonce(block)
		}
		if err != nil {
			return nil, fmt.Errorf("reqlock: NewAESSealer: %w", err)
		}
	}
	if s.keys[current] == nil {
		return nil, fmt.Errorf("reqlock: NewAESSealer: there is no key with the id of the current one, %q", current)
	}
	return s, nil
}

// Seal encrypts with the current key. It returns no error.
func (s *AESSealer) Seal(_ context.Context, answer, binding []byte) (keyID string, sealed []byte, err error) {
	return s.current, s.appendSealed(nil, answer, binding), nil
}

// appendSealed appends the sealed answer to dst.
func (s *AESSealer) appendSealed(dst, answer, binding []byte) []byte {
	return s.keys[s.current].Seal(dst, nil, answer, binding) //nolint:gosec // this AEAD makes the nonce itself
}

// Open decrypts with the key of that id. The error is ErrUnreplayable if there is no such key, or if
// the authentication fails: the answer was damaged, or is not the one of this record.
func (s *AESSealer) Open(_ context.Context, keyID string, sealed, binding []byte) (answer []byte, err error) {
	key := s.keys[keyID]
	if key == nil {
		return nil, errUnknownSealKey
	}
	if answer, err = key.Open(nil, nil, sealed, binding); err != nil {
		return nil, errNotAuthentic
	}
	return answer, nil
}

var (
	errUnknownSealKey error = &narrower{"this process does not have the key", ErrUnreplayable}
	errNotAuthentic   error = &narrower{"the authentication failed: the answer is damaged, or belongs to another record", ErrUnreplayable}
)

// checkKeyID returns the error of the id of a key that a record cannot have.
func checkKeyID(id string) error {
	if id == "" || len(id) > maxKeyIDLen {
		return errors.New("the id of a key has 1 to 255 bytes")
	}
	return nil
}

// String returns the id of the current key and the number of keys.
func (s *AESSealer) String() string {
	return fmt.Sprintf("reqlock.AESSealer(%q, %d keys)", s.current, len(s.keys))
}

// GoString returns the same as String, for %#v.
func (s *AESSealer) GoString() string { return s.String() }

// LogValue returns the same as String, for package slog.
func (s *AESSealer) LogValue() slog.Value { return slog.StringValue(s.String()) }
