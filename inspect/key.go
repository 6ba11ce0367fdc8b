package inspect

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// A Key is the key of a lock or of a record. It prints and marshals as a digest, because keys may hold
// personal data, which must not get into logs by accident. It is comparable.
type Key struct{ raw, name string }

// attemptMark begins the key of the lock of an idempotent request, as in core.
const attemptMark = "i:"

// Raw returns the key itself. That of an idempotent request is "i:" and its endpoint key. It is "" if
// Redis has only a digest of the key: then the Name is what is left.
func (k Key) Raw() string { return k.raw }

// Name returns the name of the lock in Redis.
func (k Key) Name() string { return k.name }

// EndpointKey returns the key of an idempotent request, as core.ReadRecord and core.Resolve take it. It
// reports false for any other key, and if Raw is "".
func (k Key) EndpointKey() (key string, ok bool) { return strings.CutPrefix(k.raw, attemptMark) }

// digestLen is the length of the digest of a key in a line of the log.
const digestLen = 12

// String returns the digest of the key in a line of the log: the first 12 hex digits of its SHA-256.
func (k Key) String() string {
	sum := sha256.Sum256([]byte(k.raw))
	digest := sum[:]
	if k.raw == "" { // the name ends with the SHA-256: see package keyspace
		written := k.name[max(0, len(k.name)-base64.RawURLEncoding.EncodedLen(sha256.Size)):]
		digest, _ = base64.RawURLEncoding.DecodeString(written)
	}
	return hex.EncodeToString(digest[:min(digestLen/2, len(digest))])
}

// GoString returns the same as String, for %#v.
func (k Key) GoString() string { return k.String() }

// MarshalText returns the same as String.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// isDigest reports whether the text has the form of the digest in a line of the log.
func isDigest(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == digestLen
}
