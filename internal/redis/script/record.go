package script

import (
	"strconv"
	"strings"
)

// RecordStart is how many bytes of a record ParseRecord needs at most. What follows may be long: the fingerprint, the attempts
// that an operator has forgotten, and the answer.
const RecordStart = 256

// A Record has fields of a record: see record.lua.
type Record struct {
	State      byte // R, D, U or A
	Token      string
	Number     int    // of an attempt in the state R
	IsReported bool   // its unknown outcome was reported
	Reference  string // any text, because another client may have written it
	Answer     int    // where the answer begins
}

// ParseRecord returns the fields of a record. start has its first bytes, and size is how many it has. ParseRecord reports
// false for a text that parse of state.lua does not accept.
func ParseRecord(start string, size int) (r Record, ok bool) {
	head, rest, ok := strings.Cut(start, " ")
	sizes, rest, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 || len(head) < 2 || strings.IndexByte("RDUA", head[0]) < 0 || !isToken(head[1:]) {
		return Record{}, false
	}
	fields := strings.Split(sizes, ",")
	if len(fields) == 1 {
		fields = append(fields, "", "", "", "")
	}
	if len(fields) != 5 || fields[4] != "" && fields[4] != "1" {
		return Record{}, false
	}
	fingerprint, ok := atoi(fields[0])
	number, ok2 := atoi(fields[1])
	reference, ok3 := atoi(fields[2])
	forgotten, ok4 := atoi(fields[3])
	if !ok || !ok2 || !ok3 || !ok4 {
		return Record{}, false
	}
	r = Record{
		State: head[0], Token: head[1:], Number: number, IsReported: fields[4] != "",
		Answer: len(start) - len(rest) + reference + fingerprint + forgotten,
	}
	isComplete := (fields[0] != "" || r.State == 'U') && (r.State != 'R' || number > 0)
	if !isComplete || r.Answer > size {
		return Record{}, false
	}
	if reference <= len(rest) { // a longer one is not of reqlock
		r.Reference = rest[:reference]
	}
	return r, true
}

// isToken reports whether a text may be the token of an attempt, also with a prefix.
func isToken(text string) bool {
	before, after, _ := strings.Cut(text, ":")
	return before != "" && after != ""
}

// maxNumber is the largest number that state.lua accepts.
const maxNumber = 1_000_000_000

// atoi returns the number of these digits, or 0 if there are none.
func atoi(digits string) (n int, ok bool) {
	if strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	if digits == "" {
		return 0, true
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n <= maxNumber
}
