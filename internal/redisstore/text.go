package redisstore

import "strconv"

// A text is an argument of a command, in a buffer that serves again for the next
// one: go-redis writes it as it is, and nothing is allocated for it. It prints
// as what it says, for the routing of a cluster client and for hooks.
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

// number makes the text say n. A text that says numbers says nothing else.
func (t *text) number(n int64) *text {
	if t.said != n || len(t.buffer) == 0 {
		t.buffer, t.said = strconv.AppendInt(t.buffer[:0], n, 10), n
	}
	return t
}
