// Package history is the record of a run: what each client called and what was returned,
// how the resource under the lock was accessed, and what was disrupted. The checks read
// nothing else, so a history that is kept as JSON can be validated again.
//
// All times are readings of CLOCK_MONOTONIC in nanoseconds, which all processes of a host
// share. A time of 0 means never.
package history

import (
	"encoding"
	"fmt"
	"strings"

	"github.com/reqlock/reqlock/tests/internal/history"
)

// A Disruption is a period in which something failed: because a fault was injected, or
// because the machine stalled.
type Disruption struct {
	Name string `json:"name"`
	From int64  `json:"from"`
	To   int64  `json:"to,omitempty"` // 0 if it did not end
	// Loss declares that data which Redis had confirmed may be lost. The holder of a lease
	// that was granted before the end of the loss may still rely on it while another client
	// is granted the key.
	Loss bool `json:"loss,omitempty"`
	// Keys are the keys whose data is lost, as clients call them; all keys if it is empty.
	Keys []string `json:"keys,omitempty"`
}

// A Lag is a period in which the machine did not let a client process run, as the process
// noticed itself.
type Lag struct {
	Process int   `json:"process"`
	From    int64 `json:"from"`
	To      int64 `json:"to"`
}

// A History is the record of one run.
type History struct {
	Name       string `json:"name"` // of the fault
	Deployment string `json:"deployment"`
	Seed       uint64 `json:"seed"`
	TTL        int64  `json:"ttl"`   // of each lease, in ns
	Claim      int64  `json:"claim"` // how long a key stays assigned to a waiter that is gone
	// CommandTimeout is how long the lock waits for the reply to one command, in ns.
	CommandTimeout int64 `json:"command_timeout,omitempty"`
	// FailFast is after how long an outage the lock refuses new calls at once, in ns; 0 if no
	// outage of the run is that long.
	FailFast  int64 `json:"fail_fast,omitempty"`
	Begun     int64 `json:"begun"`
	Ended     int64 `json:"ended"`
	Recovered int64 `json:"recovered"` // when no disruption lasted any more; 0 if never
	// Unfenced is set if no client asked for fencing numbers: a quorum has none.
	Unfenced bool `json:"unfenced,omitempty"`
	// Careless is set if clients wrote after the end of their leases: the negative control,
	// in which updates of an unfenced register must be lost.
	Careless bool `json:"careless,omitempty"`

	Ops             []Op             `json:"ops"`
	Accesses        []Access         `json:"accesses"`
	Effects         []Effect         `json:"effects"`
	Disruptions     []Disruption     `json:"disruptions"`
	ProcessFailures []ProcessFailure `json:"process_failures"`
	Lags            []Lag            `json:"lags,omitempty"`
	// FastLeases are the leases of clients at full speed. Sizes has the processes that
	// ended by themselves.
	FastLeases []FastLease `json:"fast_leases,omitempty"`
	Sizes      []Size      `json:"sizes,omitempty"`
	// AheadCounters has the deleted counters that were ahead.
	AheadCounters []AheadCounter `json:"ahead_counters,omitempty"`
}

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

// A Size is the size of a client process.
type Size struct {
	Process int `json:"process"`
	// Goroutines is the largest number of goroutines of the process until At.
	Goroutines int   `json:"goroutines"`
	At         int64 `json:"at"`
}

// Save writes the history to a file as JSON.
func (h *History) Save(path string) error { return history.Save(path, h) }

// Load reads a history that Save has written. A field that History does not have is an error.
func Load(path string) (*History, error) {
	h := &History{}
	return h, history.Load(path, h)
}
