package adapter

import (
	"slices"
	"sync"
)

// An inside is what the middlewares of reqlock behind an idempotent middleware have done with its
// request. Its methods are safe for concurrent use.
type inside struct {
	mu sync.Mutex
	// outer is that of the idempotent middleware around this one, for RPC. There, an error passes
	// through all of them. HTTP answers once, so Exchange.send tells the outer one of a refusal.
	outer    *inside
	recorder *Recorder // of the answer; nil for RPC

	entered  int       // requests that have entered a middleware, and have not left it
	refusals []refused // what they have answered with: see note
	rejected bool      // there was a refusal
	ran      bool      // the handler may have had its effect
	late     bool      // there was a refusal after that, or beside a request that may have run
	broken   bool      // a request has panicked or was cut off, or an attempt inside is unknown
	lost     bool      // because a lock was lost
	resent   bool      // a request was sent more than once
}

// maxRefusals is how many refusals of a request are compared with its answer.
const maxRefusals = 16

// note records a refusal, for a caller that holds mu. Of many, the last ones are kept, and for RPC also
// the first one: a middleware that tries again may return either.
func (in *inside) note(refusal refused) {
	in.rejected = true
	switch {
	case len(in.refusals) < maxRefusals:
	case in.recorder == nil:
		in.refusals = slices.Delete(in.refusals, 1, 2)
	default:
		in.refusals = in.refusals[1:]
	}
	in.refusals = append(in.refusals, refusal)
}

// runsOn reports whether a request still runs behind a middleware of reqlock, or waits for its
// lock, in another goroutine.
func (in *inside) runsOn() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.entered > 0
}

// wasEntered reports whether the request has been in a middleware inside.
func (in *inside) wasEntered() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.entered > 0 || in.ran || in.rejected
}

// mayHaveRun reports whether the handler may have run behind a middleware inside, or still runs or
// waits there.
func (in *inside) mayHaveRun() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ran || in.entered > 0
}

// wasRefused reports whether a middleware has refused the request, and whether it did so after the
// request may have run.
func (in *inside) wasRefused() (given, late bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.rejected, in.late
}

// wasBroken reports whether nobody knows how the request has ended behind a middleware of
// reqlock, whatever the answer is.
func (in *inside) wasBroken() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.broken
}

// wasResent reports whether a proxy has sent the request more than once.
func (in *inside) wasResent() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.resent
}

// HasLost reports whether a lock inside was lost while the request ran. What is written after that
// is not the handler's answer.
func (in *inside) HasLost() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.lost
}
