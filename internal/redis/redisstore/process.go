package redisstore

import (
	"crypto/rand"
	"encoding/hex"
)

// NewProcess returns a new random id of a process, of 32 hex digits: see New.
func NewProcess() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never returns an error
	return hex.EncodeToString(id[:])
}
