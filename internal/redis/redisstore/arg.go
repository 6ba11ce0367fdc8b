package redisstore

import "strconv"

// An arg is one argument of a command. Its buffer is used again for the next command, and
// go-redis writes the buffer as it is, so an argument allocates nothing. It prints as its
// value, for hooks and for the routing of a cluster's client. An arg that was set by setInt
// must be set by setInt only.
type arg struct {
	buffer []byte
	number int64 // the value, if it was set by setInt
}

// MarshalBinary returns the value. go-redis calls it. It never fails.
func (a *arg) MarshalBinary() ([]byte, error) { return a.buffer, nil }

// String returns the value.
func (a *arg) String() string { return string(a.buffer) }

func (a *arg) setString(s string) *arg {
	a.buffer = append(a.buffer[:0], s...)
	return a
}

// setBytes makes the caller's slice the value, without a copy. The arg never writes to the
// slice. It may be big: see operation.clear.
func (a *arg) setBytes(b []byte) *arg {
	a.buffer = b
	return a
}

func (a *arg) setInt(n int64) *arg {
	if a.number != n || len(a.buffer) == 0 {
		a.buffer, a.number = strconv.AppendInt(a.buffer[:0], n, 10), n
	}
	return a
}
