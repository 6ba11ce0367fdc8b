package keyspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// hashedMark stands before the digest in the name of a lock whose key cannot
// be written as it is.
const hashedMark = "h:"

// hashedLen is the length of an unpadded base64url SHA-256.
const hashedLen = 43

// errPrefix says what is wrong with a prefix: half a hash tag would tear a
// lock and its companions apart.
var errPrefix = errors.New(`has a "{" or "}" but no whole hash tag such as "{app}"`)

// Names turns a lock key into the names of its Redis keys. All names of one
// lock lie in one cluster slot, whatever bytes the key holds.
type Names struct {
	prefix string
	plain  bool // the prefix has no brace
}

// New returns the names behind a prefix that CheckPrefix accepts.
func New(prefix string) Names { return Names{prefix, !strings.ContainsAny(prefix, "{}")} }

// CheckPrefix refuses a prefix with half a hash tag, or an empty one.
func CheckPrefix(prefix string) error {
	if strings.ContainsAny(prefix, "{}") && !HasTag(prefix) {
		return errPrefix
	}
	return nil
}

// The suffixes of the companions: the waiting line, the fence, the record.
const (
	QueueSuffix  = ":q"
	FenceSuffix  = ":f"
	RecordSuffix = ":r"
)

// Lock returns the name of the lock itself: prefix and key, verbatim. Four
// kinds of key are written as a digest instead: one with a "}" but no hash
// tag, for which no companion in the same slot can be named; one whose name
// could be that of another lock's companion; one that is nothing but a hash tag,
// since its companions would be those of the key in it; and one that looks like
// a digest already, so that no two keys share a name.
func (n Names) Lock(key string) string {
	name := n.prefix + key
	oneSlot := HasTag(name) || !strings.Contains(name, "}")
	if oneSlot && !looksCompanion(name) && !onlyTag(name) && !looksHashed(key) {
		return name
	}
	sum := sha256.Sum256([]byte(key))
	return n.prefix + hashedMark + base64.RawURLEncoding.EncodeToString(sum[:])
}

// AppendLock appends what lock returns.
func (n Names) AppendLock(to []byte, key string) []byte {
	if n.plain && strings.IndexByte(key, '{') < 0 && strings.IndexByte(key, '}') < 0 && !looksHashed(key) {
		return append(append(to, n.prefix...), key...)
	}
	return append(to, n.Lock(key)...)
}

// Key returns the key whose lock has this name. It cannot tell it for a name
// that is, or may be, a digest.
func (n Names) Key(name string) (key string, ok bool) {
	key, ok = strings.CutPrefix(name, n.prefix)
	return key, ok && key != "" && n.Lock(key) == name
}

// Companion returns the name of a key that lies in the lock's slot.
func (n Names) Companion(lock, suffix string) string {
	if HasTag(lock) {
		return lock + suffix
	}
	return "{" + lock + "}" + suffix
}

// AppendCompanion appends what companion returns.
func (n Names) AppendCompanion(to, lock []byte, suffix string) []byte {
	if bytes.IndexByte(lock, '{') < 0 {
		return append(append(append(append(to, '{'), lock...), '}'), suffix...)
	}
	return append(to, n.Companion(string(lock), suffix)...)
}

// ShardChannel returns the channel of a process in the slot of a lock. line.lua
// knows it too.
func (n Names) ShardChannel(lock, process string) string { return n.Companion(lock, ":"+process) }

// ProcessChannel returns the channel of a process on a server alone, and behind Sentinel.
// line.lua knows it too.
func (n Names) ProcessChannel(process string) string { return n.prefix + process }

// HasTag reports whether Redis Cluster hashes only a part of the name: the
// first "{" is followed by a "}" with something between them.
func HasTag(name string) bool {
	_, rest, found := strings.Cut(name, "{")
	return found && strings.Index(rest, "}") > 0
}

// looksCompanion reports whether the name has the form that companion gives.
func looksCompanion(name string) bool {
	return HasTag(name) && (strings.HasSuffix(name, QueueSuffix) ||
		strings.HasSuffix(name, FenceSuffix) || strings.HasSuffix(name, RecordSuffix))
}

// onlyTag reports whether the name is one hash tag and nothing else.
func onlyTag(name string) bool {
	return strings.HasPrefix(name, "{") && strings.Index(name, "}") == len(name)-1
}

// looksHashed reports whether the key has the form that lock gives to keys it
// must hash.
func looksHashed(key string) bool {
	digest, found := strings.CutPrefix(key, hashedMark)
	if !found || len(digest) != hashedLen {
		return false
	}
	_, err := base64.RawURLEncoding.DecodeString(digest)
	return err == nil
}

// ParseHint takes a hint apart: "<token> <lock name>". It is one only if the
// token is of this process. Anybody may publish anything on the channel, so
// nothing else is believed of it than "look again".
func ParseHint(payload, process string) (token, name string, ok bool) {
	token, name, _ = strings.Cut(payload, " ")
	owner, number, _ := strings.Cut(token, ":")
	_, err := strconv.ParseUint(number, 10, 64)
	return token, name, owner == process && err == nil && name != ""
}
