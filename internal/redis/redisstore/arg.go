package redisstore

import "strconv"

// A text is an argument of a command, in a buffer that serves again for the next
// one: go-redis writes it as it is, and nothing is allocated for it. It prints
// as what it says, for the routing of a cluster client and for hooks. A text that
// says numbers, or what was lent to it, says nothing else.
type text struct {
	buffer []byte
	said   int64 // the number that it says, if it says one
}

// MarshalBinary is how go-redis gets at what it writes. It never fails.
func (t *text) MarshalBinary() ([]byte, error) { return t.buffer, nil }

// String returns what the text says.
func (t *text) String() string { return string(t.buffer) }

// set makes the text say s.
func (t *text) set(s string) *text {
	t.buffer = append(t.buffer[:0], s...)
	return t
}

// lend makes the text say what stands in a buffer of the caller's, which is never
// written to. It may be big: see exchange.clear.
func (t *text) lend(b []byte) *text {
	t.buffer = b
	return t
}

// number makes the text say n.
func (t *text) number(n int64) *text {
	if t.said != n || len(t.buffer) == 0 {
		t.buffer, t.said = strconv.AppendInt(t.buffer[:0], n, 10), n
	}
	return t
}
