// Package keyspace names the Redis keys and the channels of a lock.
//
// The lock K is one string key: prefix and key, verbatim where possible. Beside it are
// its waiting queue {K}:q, a list of tokens; its fence {K}:f, the last fencing number that
// was reserved; its record {K}:r, a string, if K is the lock of an idempotent request; and its
// shared leases {K}:s, a sorted set, while K has any. The hash tag puts all of them into the
// cluster slot of K. The record of a process is {<prefix>process:<process id>}:p, a hash.
//
// A process has one channel, prefix and process id. In a cluster it has one sharded
// channel for each key that it waits for, {K}:<process id>, in the slot of K. A message,
// a hint, is "<token> <lock name>".
package keyspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/reqlock/reqlock/internal/store"
)

// hashedMark precedes the digest in the name of a lock that cannot contain its key
// verbatim.
const hashedMark = "h:"

// hashedLen is the length of an unpadded base64url SHA-256.
const hashedLen = 43

// errPrefix is the fault of a prefix with half a hash tag: a lock and its companions would
// be in different cluster slots.
var errPrefix = errors.New(`has a "{" or "}" but no whole hash tag such as "{app}"`)

// Names makes the names of a lock's Redis keys. All names of one lock are in one cluster
// slot, for any bytes in its key. It is safe for concurrent use.
type Names struct {
	prefix string
	plain  bool // the prefix has no brace
}

// New returns the names with a prefix that CheckPrefix accepts.
func New(prefix string) Names { return Names{prefix, !strings.ContainsAny(prefix, "{}")} }

// CheckPrefix returns an error for a prefix with half a hash tag or an empty one.
func CheckPrefix(prefix string) error {
	if strings.ContainsAny(prefix, "{}") && !HasTag(prefix) {
		return errPrefix
	}
	return nil
}

// The suffixes of the companions of a lock, and of the records of processes.
const (
	QueueSuffix  = ":q"
	FenceSuffix  = ":f"
	RecordSuffix = ":r"
	SharedSuffix = ":s"
	// ProcessSuffix is that of the record of a process, which is no companion of a lock: see Process.
	ProcessSuffix = ":p"
)

// suffixes are all suffixes. No lock has a name that ends in one of them.
var suffixes = [...]string{QueueSuffix, FenceSuffix, RecordSuffix, SharedSuffix, ProcessSuffix}

// Lock returns the name of the lock itself: prefix and key, verbatim. Four kinds of key are
// written as a digest instead:
//   - a key with a "}" but no hash tag: no companion could be in the same slot;
//   - a key whose name could be the name of another lock's companion;
//   - a key that is one hash tag and nothing else: its companions would be those of the key
//     inside the tag;
//   - a key that looks like a digest: two keys could share a name.
func (n Names) Lock(key string) string {
	name := n.prefix + key
	oneSlot := HasTag(name) || !strings.Contains(name, "}")
	if oneSlot && !isCompanionLike(name) && !isOnlyTag(name) && !isDigestLike(key) {
		return name
	}
	sum := sha256.Sum256([]byte(key))
	return n.prefix + hashedMark + base64.RawURLEncoding.EncodeToString(sum[:])
}

// AppendLock appends the result of Lock.
func (n Names) AppendLock(to []byte, key string) []byte {
	if n.plain && strings.IndexByte(key, '{') < 0 && strings.IndexByte(key, '}') < 0 && !isDigestLike(key) {
		return append(append(to, n.prefix...), key...)
	}
	return append(to, n.Lock(key)...)
}

// maxKeyLen is the largest length of a lock's key: core allows 4,096 bytes, and puts "i:" in
// front of the key of an attempt.
const maxKeyLen = 4096 + len("i:")

// Key returns the key of the lock with this name. It reports false for a name that is, or
// may be, a digest, and for a name that is too long for a lock: names come from messages, which
// any client may forge.
func (n Names) Key(name string) (key string, ok bool) {
	key, ok = strings.CutPrefix(name, n.prefix)
	return key, ok && key != "" && len(key) <= maxKeyLen && n.Lock(key) == name
}

// Companion returns the name of the key with this suffix in the slot of the lock.
func (n Names) Companion(lock, suffix string) string {
	if HasTag(lock) {
		return lock + suffix
	}
	return "{" + lock + "}" + suffix
}

// AppendCompanion appends the result of Companion.
func (n Names) AppendCompanion(to, lock []byte, suffix string) []byte {
	if bytes.IndexByte(lock, '{') < 0 {
		return append(append(append(append(to, '{'), lock...), '}'), suffix...)
	}
	return append(to, n.Companion(string(lock), suffix)...)
}

// ShardChannel returns the channel of a process in the slot of a lock. queue.lua makes the
// same name.
func (n Names) ShardChannel(lock, process string) string { return n.Companion(lock, ":"+process) }

// ProcessChannel returns the channel of a process on a single server and with Sentinel.
// queue.lua makes the same name.
func (n Names) ProcessChannel(process string) string { return n.prefix + process }

// HasTag reports whether Redis Cluster hashes only a part of the name: whether a "}" follows
// the first "{" with at least one byte between them.
func HasTag(name string) bool {
	_, rest, found := strings.Cut(name, "{")
	return found && strings.Index(rest, "}") > 0
}

// isCompanionLike reports whether the name has the form of a companion.
func isCompanionLike(name string) bool {
	return HasTag(name) && slices.ContainsFunc(suffixes[:], func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// isOnlyTag reports whether the name is one hash tag and nothing else.
func isOnlyTag(name string) bool {
	return strings.HasPrefix(name, "{") && strings.Index(name, "}") == len(name)-1
}

// isDigestLike reports whether the key has the form in which Lock writes a digest.
func isDigestLike(key string) bool {
	digest, found := strings.CutPrefix(key, hashedMark)
	if !found || len(digest) != hashedLen {
		return false
	}
	_, err := base64.RawURLEncoding.DecodeString(digest)
	return err == nil
}

// ParseHint parses a hint, "<token> <lock name>". It reports whether the payload is a hint
// for this process. Any client may publish anything on the channel, so a hint only causes
// the process to ask Redis.
func ParseHint(payload, process string) (token, name string, ok bool) {
	token, name, _ = strings.Cut(payload, " ")
	owner, _, _, ok := store.ParseToken(token)
	return token, name, ok && owner == process && name != ""
}
