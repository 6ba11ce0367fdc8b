package history

import (
	"sync"
	"time"
)

// A Recorder collects the holds of a test. It is safe for concurrent use.
type Recorder struct {
	started time.Time

	mu    sync.Mutex
	holds Holds
}

// NewRecorder returns a Recorder whose times count from now.
func NewRecorder() *Recorder { return &Recorder{started: time.Now()} }

// Now returns the time of the history. It is never 0.
func (r *Recorder) Now() time.Duration { return r.At(time.Now()) }

// At returns a time as the history counts it.
func (r *Recorder) At(t time.Time) time.Duration { return t.Sub(r.started) + 1 }

// Add records a hold. The caller changes it afterwards only in Update.
func (r *Recorder) Add(one *Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds = append(r.holds, one)
}

// Update calls change, which may change recorded holds.
func (r *Recorder) Update(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// Holds returns copies of all holds.
func (r *Recorder) Holds() Holds {
	r.mu.Lock()
	defer r.mu.Unlock()
	copies := make(Holds, len(r.holds))
	for i, one := range r.holds {
		hold := *one
		copies[i] = &hold
	}
	return copies
}

// Take removes all holds from the Recorder and returns them.
func (r *Recorder) Take() Holds {
	r.mu.Lock()
	defer r.mu.Unlock()
	holds := r.holds
	r.holds = nil
	return holds
}
