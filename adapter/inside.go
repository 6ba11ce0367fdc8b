package adapter

// runsOn reports whether a request still runs behind a middleware of reqlock, or waits for its
// lock, in another goroutine.
func (r *Recorder) runsOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inside > 0
}

// refusedAny reports whether a middleware has refused the request, and whether it did so after the
// request may have run.
func (r *Recorder) refusedAny() (given, late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wasRefused, r.late
}

// wasBroken reports whether nobody knows how the request has ended behind a middleware of
// reqlock, whatever the answer is.
func (r *Recorder) wasBroken() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// wasResent reports whether a proxy has sent the request more than once.
func (r *Recorder) wasResent() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.resent
}

// HasLost reports whether a lock inside was lost while the request ran. What is written after that
// is not the handler's answer.
func (r *Recorder) HasLost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}
