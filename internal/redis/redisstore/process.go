package redisstore

import (
	"encoding/hex"

	"github.com/google/uuid"
)

// NewProcess returns a new id of a process: a random UUID (RFC 9562, version 4) as 32 hex digits,
// without hyphens. See New.
func NewProcess() string {
	id := uuid.New()
	return hex.EncodeToString(id[:])
}
