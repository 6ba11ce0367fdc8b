package store

import "time"

// An Outage is a time in which a server serves no calls, or refuses most of them.
type Outage struct {
	// Server is the address of the server, or a short text if the client chooses it.
	Server string
	// Err is the failure with which the outage began. It is sanitized as that of a Fault.
	Err error
	// Lasted is how long the outage has lasted, or 0 if it begins.
	Lasted time.Duration
	// Refused is how many callers it has refused, and Unlocked how many have run without the
	// lock.
	Refused, Unlocked int
}

// Error returns the text of the failure.
func (o *Outage) Error() string { return o.Err.Error() }

// Unwrap returns the failure.
func (o *Outage) Unwrap() error { return o.Err }
