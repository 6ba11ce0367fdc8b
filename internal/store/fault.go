package store

// A Fault is a transition that the server did not answer, or answered with an
// error. It is never contention.
type Fault struct {
	// Unknown is true when the transition may have been, or may yet be,
	// applied: no reply came.
	Unknown bool
	// Passing is true when the same command may well succeed a little later:
	// a lost connection, a server that loads or fails over.
	Temporary bool
	// Err is the cause. It never unwraps to an error of package context, so
	// that a fault cannot be taken for the end of the caller's own context.
	Err error
}

// Error returns the cause's text.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Err }
