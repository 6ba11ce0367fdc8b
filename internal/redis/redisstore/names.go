package redisstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
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

// names turns a lock key into the names of its Redis keys. All names of one
// lock lie in one cluster slot, whatever bytes the key holds.
type names struct {
	prefix string
	plain  bool // the prefix has no brace
}

func newNames(prefix string) names { return names{prefix, !strings.ContainsAny(prefix, "{}")} }

// checkPrefix refuses a prefix with half a hash tag, or an empty one.
func checkPrefix(prefix string) error {
	if strings.ContainsAny(prefix, "{}") && !tagged(prefix) {
		return errPrefix
	}
	return nil
}

// The suffixes of the companions: the waiting line, the fence, the record.
const (
	lineSuffix   = ":q"
	fenceSuffix  = ":f"
	recordSuffix = ":r"
)

// lock returns the name of the lock itself: prefix and key, verbatim. Four
// kinds of key are written as a digest instead: one with a "}" but no hash
// tag, for which no companion in the same slot can be named; one whose name
// could be that of another lock's companion; one that is nothing but a hash tag,
// since its companions would be those of the key in it; and one that looks like
// a digest already, so that no two keys share a name.
func (n names) lock(key string) string {
	name := n.prefix + key
	oneSlot := tagged(name) || !strings.Contains(name, "}")
	if oneSlot && !looksCompanion(name) && !onlyTag(name) && !looksHashed(key) {
		return name
	}
	sum := sha256.Sum256([]byte(key))
	return n.prefix + hashedMark + base64.RawURLEncoding.EncodeToString(sum[:])
}

// appendLock appends what lock returns.
func (n names) appendLock(to []byte, key string) []byte {
	if n.plain && strings.IndexByte(key, '{') < 0 && strings.IndexByte(key, '}') < 0 && !looksHashed(key) {
		return append(append(to, n.prefix...), key...)
	}
	return append(to, n.lock(key)...)
}

// key returns the key whose lock has this name. It cannot tell it for a name
// that is, or may be, a digest.
func (n names) key(name string) (key string, ok bool) {
	key, ok = strings.CutPrefix(name, n.prefix)
	return key, ok && key != "" && n.lock(key) == name
}

// companion returns the name of a key that lies in the lock's slot.
func (n names) companion(lock, suffix string) string {
	if tagged(lock) {
		return lock + suffix
	}
	return "{" + lock + "}" + suffix
}

// appendCompanion appends what companion returns.
func (n names) appendCompanion(to, lock []byte, suffix string) []byte {
	if bytes.IndexByte(lock, '{') < 0 {
		return append(append(append(append(to, '{'), lock...), '}'), suffix...)
	}
	return append(to, n.companion(string(lock), suffix)...)
}

// tagged reports whether Redis Cluster hashes only a part of the name: the
// first "{" is followed by a "}" with something between them.
func tagged(name string) bool {
	_, rest, found := strings.Cut(name, "{")
	return found && strings.Index(rest, "}") > 0
}

// looksCompanion reports whether the name has the form that companion gives.
func looksCompanion(name string) bool {
	return tagged(name) && (strings.HasSuffix(name, lineSuffix) ||
		strings.HasSuffix(name, fenceSuffix) || strings.HasSuffix(name, recordSuffix))
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
