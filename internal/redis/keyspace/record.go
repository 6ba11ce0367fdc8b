package keyspace

import "strings"

// globs escapes the characters that have a meaning in a pattern of Redis.
var globs = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// Escape returns a pattern of Redis that matches only the text.
func Escape(text string) string { return globs.Replace(text) }

// RecordPattern returns a pattern of SCAN that matches all records. It also matches other names:
// see OfRecord.
func (n Names) RecordPattern() string {
	pattern := Escape(n.prefix) + "*" + RecordSuffix
	if n.prefix == "" || HasTag(n.prefix) {
		return pattern
	}
	return "*" + pattern // a record begins with its prefix, or with "{" and its prefix
}

// OfRecord returns the name and the key of the lock to which a record with this name belongs. The
// key is "" if Lock has written it as a digest. OfRecord reports false for the name of anything
// else.
func (n Names) OfRecord(record string) (lock, key string, ok bool) {
	return n.ofCompanion(record, RecordSuffix)
}

// ofCompanion is OfRecord for the companion with this suffix.
func (n Names) ofCompanion(name, suffix string) (lock, key string, ok bool) {
	body, hasSuffix := strings.CutSuffix(name, suffix)
	if !hasSuffix {
		return "", "", false
	}
	inTag := strings.TrimSuffix(strings.TrimPrefix(body, "{"), "}")
	for _, lock := range [...]string{body, inTag} {
		if n.Companion(lock, suffix) != name {
			continue
		}
		if key, ok := n.OfLock(lock); ok {
			return lock, key, true
		}
	}
	return "", "", false
}

// LockPattern returns a pattern of SCAN that matches the locks whose keys match a pattern. It also
// matches other names: see OfLock. A key that Lock writes as a digest matches as the digest.
func (n Names) LockPattern(keys string) string { return Escape(n.prefix) + keys }

// OfLock returns the key of the lock with this name. The key is "" if Lock has written it as a
// digest. OfLock reports false for a name of anything else.
func (n Names) OfLock(name string) (key string, ok bool) {
	if key, ok := n.Key(name); ok {
		return key, true
	}
	written, isOurs := strings.CutPrefix(name, n.prefix)
	return "", isOurs && isDigestLike(written)
}

// OfAny is OfLock for the name of a lock or of any of its companions.
func (n Names) OfAny(name string) (lock, key string, ok bool) {
	if key, ok := n.OfLock(name); ok {
		return name, key, true
	}
	for _, suffix := range suffixes {
		if lock, key, ok := n.ofCompanion(name, suffix); ok {
			return lock, key, true
		}
	}
	return "", "", false
}

// processMark precedes the id in the name of the record of a process.
const processMark = "process:"

// idLen is the length of a process id: hex digits of 16 bytes.
const idLen = 32

// Process returns the name of the record of a process: see package registry. It differs from the
// name of the lock of the key "process:<id>", and from those of its companions.
func (n Names) Process(id string) string { return n.Companion(n.prefix+processMark+id, ProcessSuffix) }

// ProcessPattern returns a pattern of SCAN that matches the records of the processes whose ids begin
// with these digits. It also matches other names: see OfProcess.
func (n Names) ProcessPattern(digits string) string {
	body := Escape(n.prefix) + processMark + digits + "*"
	if HasTag(n.prefix) {
		return body + ProcessSuffix
	}
	return "{" + body + "}" + ProcessSuffix
}

// OfProcess returns the id of the process to which a record with this name belongs. It reports
// false for the name of anything else.
func (n Names) OfProcess(record string) (id string, ok bool) {
	body := strings.TrimSuffix(strings.TrimSuffix(record, ProcessSuffix), "}")
	id = body[max(0, len(body)-idLen):]
	return id, len(id) == idLen && strings.Trim(id, "0123456789abcdef") == "" && n.Process(id) == record
}
