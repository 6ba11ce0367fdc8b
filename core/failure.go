package core

// A Failure is how a handler of an idempotent HTTP request failed. The function of WithUnknown
// gets it, and reports whether the outcome of the request is unknown. grpclock has its own
// Failure.
type Failure struct {
	// Status is the status that the handler has written, of 400 or more or below 200. If the handler
	// leaves its answer to a middleware outside, Status is the status that the handler or
	// its error has set. After a panic, Status is any status that the handler had written
	// before. It is 0 if there is no status.
	Status int
	// Panic is true if the handler panicked, also with http.ErrAbortHandler, or ended its
	// goroutine.
	Panic bool
	// Err is the error that the handler has given to its framework: with Echo the one that
	// it returned, with Gin the last one that it added to c.Errors. If there is none, Err is
	// the error by which the body of the request broke off, or the cause for which the
	// handler's context had ended, such as ErrLost or context.Canceled. Otherwise it is nil.
	Err error
}
