package history

import (
	"encoding"
	"fmt"
	"strings"
)

// A FastLease is the short record of a lease of a client at full speed: there are too many
// of them for two Ops each. In a file it is one line.
type FastLease struct {
	Process, Client int
	Call, Return    int64 // of the Lock
	Fence           int64
	Key             string
}

var (
	_ encoding.TextMarshaler   = FastLease{}
	_ encoding.TextUnmarshaler = (*FastLease)(nil)
)

// MarshalText writes the fields in order, separated by spaces.
func (l FastLease) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%d %d %d %d %d %s", l.Process, l.Client, l.Call, l.Return, l.Fence, l.Key), nil
}

// UnmarshalText reads the output of MarshalText.
func (l *FastLease) UnmarshalText(text []byte) error {
	var read FastLease
	_, err := fmt.Fscan(strings.NewReader(string(text)), &read.Process, &read.Client, &read.Call, &read.Return, &read.Fence, &read.Key)
	if err == nil {
		*l = read
	}
	return err
}

// An AheadCounter is a counter of fencing numbers that was ahead of the clock of its server
// when it was deleted.
type AheadCounter struct {
	Key string `json:"key"` // the name of the lock in Redis
	At  int64  `json:"at"`
	By  int64  `json:"by"` // in ns
}
