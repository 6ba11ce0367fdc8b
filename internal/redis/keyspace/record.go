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
	body, isRecord := strings.CutSuffix(record, RecordSuffix)
	if !isRecord {
		return "", "", false
	}
	inTag := strings.TrimSuffix(strings.TrimPrefix(body, "{"), "}")
	for _, lock := range [...]string{body, inTag} {
		written, isOurs := strings.CutPrefix(lock, n.prefix)
		if !isOurs || n.Companion(lock, RecordSuffix) != record {
			continue
		}
		if key, ok := n.Key(lock); ok {
			return lock, key, true
		}
		if isDigestLike(written) {
			return lock, "", true
		}
	}
	return "", "", false
}
