package resharding

import (
	"fmt"
	"strings"
	"sync"
)

// A request is what became of an idempotent request. It is safe for concurrent
// use until it is checked.
type request struct {
	mu          sync.Mutex
	effects     int // of all attempts
	story       []string
	committed   string // the answer of the attempt that ran last
	doubtful    bool   // that attempt lost its lease, or could not be committed
	replays     []string
	interrupted int // how many were told that nobody knows
}

// run notes the effect of an attempt, and its answer.
func (r *request) run(answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.effects++
	r.committed = answer
}

// tell adds to the story that is told where something is wrong.
func (r *request) tell(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.story = append(r.story, fmt.Sprintf(format, args...))
}

// doubt notes that the attempt may not be done.
func (r *request) doubt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubtful = true
}

// replayed notes an answer that was given again.
func (r *request) replayed(answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replays = append(r.replays, answer)
}

// refused notes somebody who was told that nobody knows.
func (r *request) refused() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupted++
}

// faults finds what is wrong with the request.
func (r *request) faults() (found []string) {
	if r.effects != 1 {
		found = append(found, fmt.Sprintf("took effect %d times: %s", r.effects, strings.Join(r.story, "; ")))
	}
	for _, replay := range r.replays {
		if replay != r.committed {
			found = append(found, fmt.Sprintf("the replay %q of %q", replay, r.committed))
		}
	}
	if r.interrupted > 0 && !r.doubtful {
		found = append(found, fmt.Sprintf("%d were told that it was interrupted", r.interrupted))
	}
	return found
}
