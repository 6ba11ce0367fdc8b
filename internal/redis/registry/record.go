// Package registry writes and reads the records of processes: who a process is, how many leases it
// holds, how many callers wait in it, and which of both have lasted longest. The record of a process
// is one hash with the name that keyspace.Names.Process gives it. It expires after TTL, and a
// Beater writes it each Interval.
//
// A record is for people. No lock depends on it, so a beat that fails is no fault of a lock. A
// process without a beat for SilentAfter is silent, and not known to be dead: its beats may fail. One
// without a record may not be registered.
package registry

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Format is the number of the format that this package writes. A later format adds fields, and
// changes the meaning of none.
const Format = 1

// MaxEntries is how many holds and how many waits a record has at most: those that have lasted longest.
const MaxEntries = 20

// A Process is the record of a process.
type Process struct {
	// Format is the number of the format of the record. It may be above Format.
	Format int
	// Service, Version, Host and PID say which process it is.
	Service, Version, Host string
	PID                    int
	// Started is when the Locker of the process was made, and Beat when the record was written, both
	// by the clock of the process.
	Started, Beat time.Time
	// Held is how many leases have a holder, and Waiting how many callers wait for a lease.
	Held, Waiting int
	// Holds are the holds that have lasted longest, the longest one first.
	Holds []Hold
	// Waits are the keys with the callers that have waited longest, the longest one first.
	Waits []Wait
	// Age is how long ago the record was written, by the clock of the server. It is negative if
	// that is unknown. Only Read sets it.
	Age time.Duration
}

// A Hold is the use of a lease by one caller.
type Hold struct {
	// Digest is the digest of the key, as in the log.
	Digest string `json:"key"`
	// Lease is the digest of the token of the lease, as script.Digest returns it. It is "" in a record
	// of an earlier version.
	Lease string `json:"lease,omitempty"`
	// Name is the name of the lock, or the route of an idempotent request; "" is none.
	Name string `json:"name,omitempty"`
	// Since is when the hold began, by the clock of the process.
	Since time.Time `json:"since"`
	// Caller is the code that took the lease, or "" if the program does not record that.
	Caller string `json:"caller,omitempty"`
	// Idempotent says that the hold is that of an idempotent request, and Shared that its lease is
	// shared.
	Idempotent bool `json:"idempotent,omitempty"`
	Shared     bool `json:"shared,omitempty"`
}

// A Wait is one key for which callers wait.
type Wait struct {
	// Digest is that of a Hold.
	Digest string `json:"key"`
	// Name, Since and Caller are those of the caller that has waited longest.
	Name   string    `json:"name,omitempty"`
	Since  time.Time `json:"since"`
	Caller string    `json:"caller,omitempty"`
	// Requests is how many callers wait.
	Requests int `json:"requests"`
}

// LastedFor returns how long a hold or a wait since this time had lasted when the record was read. It
// compares no clocks of different machines. It returns 0 for the zero time, which is not known.
func (p *Process) LastedFor(since time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	lasted := max(0, p.Beat.Sub(since))
	return lasted + min(max(0, p.Age), math.MaxInt64-lasted)
}

// The fields of the hash.
const (
	fieldFormat  = "format"
	fieldTTL     = "ttl" // in milliseconds, so that the age follows from what is left of it
	fieldService = "service"
	fieldVersion = "version"
	fieldHost    = "host"
	fieldPID     = "pid"
	fieldStarted = "started"
	fieldBeat    = "beat"
	fieldHeld    = "held"
	fieldWaiting = "waiting"
	fieldHolds   = "holds" // this and the next one are JSON arrays, so that one write replaces all of it
	fieldWaits   = "waits"
)

// fieldNames are the fields that Read asks for.
var fieldNames = [...]string{
	fieldFormat, fieldTTL, fieldService, fieldVersion, fieldHost, fieldPID, fieldStarted, fieldBeat, fieldHeld, fieldWaiting, fieldHolds, fieldWaits,
}

// timeFormat is RFC 3339 with milliseconds, as people read it in redis-cli.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

func formatTime(t time.Time) string { return t.UTC().Format(timeFormat) }

// Encode returns the fields and values of a record that expires after ttl.
func Encode(p *Process, ttl time.Duration) []any {
	holds, waits := slices.Clone(p.Holds), slices.Clone(p.Waits)
	for i := range holds {
		holds[i].Since = rounded(holds[i].Since)
	}
	for i := range waits {
		waits[i].Since = rounded(waits[i].Since)
	}
	return []any{
		fieldFormat, Format, fieldTTL, ttl.Milliseconds(),
		fieldService, p.Service, fieldVersion, p.Version, fieldHost, p.Host, fieldPID, p.PID,
		fieldStarted, formatTime(p.Started), fieldBeat, formatTime(p.Beat),
		fieldHeld, p.Held, fieldWaiting, p.Waiting,
		fieldHolds, array(holds), fieldWaits, array(waits),
	}
}

// rounded returns a time as the record has it.
func rounded(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// array returns the entries as a JSON array.
func array[T any](entries []T) []byte {
	text, err := json.Marshal(entries)
	if len(entries) == 0 || err != nil { // a year beyond 9999
		return []byte("[]")
	}
	return text
}

// entries returns the first entries of a JSON array, or nil if it is none.
func entries[T any](text string) (found []T) {
	d := json.NewDecoder(strings.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return nil
	}
	for len(found) < MaxEntries && d.More() {
		var entry T
		if d.Decode(&entry) != nil {
			return nil
		}
		found = append(found, entry)
	}
	return found
}

// ErrNotARecord is the error of Decode for a hash of another program.
var ErrNotARecord = errors.New("reqlock: the hash is no record of a process: it has no format number")

// Decode decodes the fields of a record that expires after left; a negative time is none. It ignores
// fields that it does not know. A field that is missing, or that it cannot parse, is left out of the
// result. The error says that the hash is no record.
func Decode(fields map[string]string, left time.Duration) (Process, error) {
	format, err := strconv.Atoi(fields[fieldFormat])
	if err != nil || format < 1 {
		return Process{}, ErrNotARecord
	}
	p := Process{
		Format: format, Service: fields[fieldService], Version: fields[fieldVersion], Host: fields[fieldHost],
		PID: number(fields[fieldPID]), Held: number(fields[fieldHeld]), Waiting: number(fields[fieldWaiting]),
		Age: -1,
	}
	p.Started, _ = time.Parse(time.RFC3339, fields[fieldStarted])
	p.Beat, _ = time.Parse(time.RFC3339, fields[fieldBeat])
	p.Holds, p.Waits = entries[Hold](fields[fieldHolds]), entries[Wait](fields[fieldWaits])
	const longest = math.MaxInt64 / int64(time.Millisecond)
	if ttl := int64(number(fields[fieldTTL])); ttl > 0 && ttl <= longest && left >= 0 {
		p.Age = max(0, time.Duration(ttl)*time.Millisecond-left)
	}
	return p, nil
}

// number returns the number that a text has, or 0.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
