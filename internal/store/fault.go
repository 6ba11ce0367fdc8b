package store

import (
	"errors"
	"time"
)

// A Fault is the error of a transition that the server did not answer, or answered with an
// error. It never means contention.
type Fault struct {
	// Unknown is true if the transition may have been applied, or may be applied later:
	// no reply came.
	Unknown bool
	// Temporary is true if the same command may succeed a little later: after a lost
	// connection, or on a server that loads or fails over.
	Temporary bool
	// Outage is true if calls for other keys fail, too: see Store.OnOutage.
	Outage bool
	// Err is the cause. It never unwraps to an error of package context, so a fault cannot
	// be mistaken for the end of the caller's own context.
	Err error
}

// IsOutage reports whether an error is a Fault of an outage, or wraps one.
func IsOutage(err error) bool {
	if err == nil {
		return false // without an allocation
	}
	var fault *Fault
	return errors.As(err, &fault) && fault.Outage
}

// Error returns the text of the cause.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }

// FaultOf returns the Fault in the error of a transition. If there is none, it returns an
// unknown, permanent one with that error.
func FaultOf(err error) *Fault {
	var fault *Fault
	if errors.As(err, &fault) {
		return fault
	}
	return &Fault{Unknown: true, Err: err}
}

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
