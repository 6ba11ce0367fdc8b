package store

import (
	"strconv"
	"strings"
)

// A Limit says which leases of a key may be out beside one lease. An exclusive lease is
// alone. A shared lease is granted while fewer than Limit shared leases are out, so a
// limit of n is one of n permits, and an unlimited shared lease is that of a reader.
type Limit int

// The special limits.
const (
	// Exclusive is the limit of a lease beside which there is no other.
	Exclusive Limit = 0
	// Unlimited is the limit of a shared lease beside which there may be any number of
	// shared leases.
	Unlimited Limit = -1
)

// MaxLimit is the largest limit of a shared lease, except for Unlimited.
const MaxLimit Limit = 999_999_999

// IsShared reports whether the limit is that of a shared lease.
func (l Limit) IsShared() bool { return l != Exclusive }

// NewToken returns the token of an episode: the process id, a colon, and the number of the
// episode, from 1. The limit of a shared lease stands before the number: "0", how many
// digits the limit has (0 is Unlimited), and the limit. So a script reads from the queue
// alone which tokens can be granted, and a process of an older release, which knows no
// shared leases, still reads the token as a token.
func NewToken(process string, limit Limit, number uint64) string {
	if !limit.IsShared() {
		return process + ":" + strconv.FormatUint(number, 10)
	}
	digits := ""
	if limit != Unlimited {
		digits = strconv.Itoa(int(limit))
	}
	return process + ":0" + strconv.Itoa(len(digits)) + digits + strconv.FormatUint(number, 10)
}

// ParseToken returns the parts of a token. It reports false for a value that NewToken
// does not return for any arguments.
func ParseToken(token string) (process string, limit Limit, number uint64, ok bool) {
	process, rest, _ := strings.Cut(token, ":")
	if shared, isShared := strings.CutPrefix(rest, "0"); isShared {
		if limit, rest, ok = cutLimit(shared); !ok {
			return "", 0, 0, false
		}
	}
	if number, ok = parseNumber(rest); !ok {
		return "", 0, 0, false
	}
	return process, limit, number, true
}

// cutLimit parses the limit in front of the number of a shared token.
func cutLimit(s string) (limit Limit, rest string, ok bool) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, "", false
	}
	digits := int(s[0] - '0')
	switch s = s[1:]; {
	case digits == 0:
		return Unlimited, s, true
	case len(s) < digits:
		return 0, "", false
	}
	n, ok := parseNumber(s[:digits])
	return Limit(n), s[digits:], ok
}

// parseNumber parses a number as strconv.FormatUint writes it, except 0.
func parseNumber(s string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && s[0] != '0'
}
