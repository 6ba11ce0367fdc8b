package core

import (
	"bytes"
	"crypto/sha256"
)

// A sealed answer is stored in place of the answer: sealMark, the version of the format, the length of
// the key id in one byte, the key id, and what the Sealer has made of the padded answer. An answer of
// an adapter cannot begin with the mark: its first byte is the version of its own format, from 1.
const (
	sealMark    = "\x00sealed"
	sealVersion = 1
	maxKeyIDLen = 255
	sealHeadLen = len(sealMark) + 2
	// sealStep is the step of the lengths of sealed answers, so that they say little.
	sealStep = 256
)

// isSealed reports whether a record's answer is sealed, in any version of the format.
func isSealed(stored []byte) bool {
	return len(stored) >= len(sealMark) && string(stored[:len(sealMark)]) == sealMark
}

// sealHead returns the beginning of a sealed answer, with room for the rest.
func sealHead(keyID string, rest int) []byte {
	head := make([]byte, 0, sealHeadLen+len(keyID)+rest)
	head = append(append(head, sealMark...), sealVersion, byte(len(keyID)&maxKeyIDLen))
	return append(head, keyID...)
}

// splitSealed returns the key id of a sealed answer, and what the Sealer has made.
func splitSealed(stored []byte) (keyID string, sealed []byte, err error) {
	switch {
	case len(stored) < sealHeadLen:
		return "", nil, errSealDamaged
	case stored[len(sealMark)] != sealVersion:
		return "", nil, errSealVersion
	}
	n := sealHeadLen + int(stored[sealHeadLen-1])
	if len(stored) < n {
		return "", nil, errSealDamaged
	}
	return string(stored[sealHeadLen:n]), stored[n:], nil
}

var (
	errSealDamaged error = &narrower{"the sealed answer is damaged", ErrUnreplayable}
	errSealVersion error = &narrower{"the answer is sealed in the format of a newer version", ErrUnreplayable}
)

// bindingOf returns the additional data of the answer of a record: a digest of the format, the name of
// the lock in Redis, and the fingerprint.
func bindingOf(name string, fingerprint []byte) []byte {
	of := sha256.Sum256([]byte(name))
	text := append([]byte("reqlock answer 1\n"), of[:]...)
	sum := sha256.Sum256(append(text, fingerprint...))
	return sum[:]
}

// pad returns a copy of an answer with one byte 0x80 and zeros behind it, up to the next step.
func pad(answer []byte) []byte {
	padded := make([]byte, (len(answer)/sealStep+1)*sealStep)
	padded[copy(padded, answer)] = 0x80
	return padded
}

// unpad returns the answer of pad.
func unpad(padded []byte) ([]byte, error) {
	end := bytes.LastIndexByte(padded, 0x80)
	if end < 0 || len(bytes.TrimLeft(padded[end+1:], "\x00")) > 0 {
		return nil, errSealDamaged
	}
	return padded[:end:end], nil
}
