package resharding

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// A request is the record of an idempotent request. It is safe for concurrent use until
// violations.
type request struct {
	mu          sync.Mutex
	effects     int      // of all attempts
	log         []string // of the attempts, for a violation
	answer      string   // of the last attempt
	isUncertain bool     // that attempt lost its lease, or its commit failed
	replays     []string
	interrupted int // how many callers got ErrInterrupted
}

// recordRun records the effect of an attempt, and its answer.
func (r *request) recordRun(answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.effects++
	r.answer = answer
}

// logf adds a line to the log.
func (r *request) logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

// markUncertain records that the answer of the attempt may not be stored.
func (r *request) markUncertain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isUncertain = true
}

// recordReplay records an answer that was replayed.
func (r *request) recordReplay(answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replays = append(r.replays, answer)
}

// recordInterrupted records a caller that got ErrInterrupted.
func (r *request) recordInterrupted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupted++
}

// violations returns what is wrong with the request.
func (r *request) violations() (found []string) {
	if r.effects != 1 {
		found = append(found, fmt.Sprintf("took effect %d times: %s", r.effects, strings.Join(r.log, "; ")))
	}
	for _, replay := range r.replays {
		if replay != r.answer {
			found = append(found, fmt.Sprintf("replayed %q instead of %q", replay, r.answer))
		}
	}
	if r.interrupted > 0 && !r.isUncertain {
		found = append(found, fmt.Sprintf("%d callers got ErrInterrupted", r.interrupted))
	}
	return found
}

func TestViolationsOfRequestsAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		request *request
		want    string
	}{
		"one run, and its replays":        {&request{effects: 1, answer: "a", replays: []string{"a", "a"}}, ""},
		"no run":                          {&request{replays: []string{"a"}}, "took effect 0 times"},
		"two runs":                        {&request{effects: 2, answer: "a"}, "took effect 2 times"},
		"another answer":                  {&request{effects: 1, answer: "a", replays: []string{"a", "b"}}, "replayed"},
		"an interruption without cause":   {&request{effects: 1, answer: "a", interrupted: 1}, "ErrInterrupted"},
		"an interruption with a cause":    {&request{effects: 1, isUncertain: true, interrupted: 1}, ""},
		"a replay of an uncertain answer": {&request{effects: 1, isUncertain: true, answer: "a", replays: []string{"a"}}, ""},
	} {
		found := strings.Join(test.request.violations(), "; ")
		if (test.want == "") != (found == "") || !strings.Contains(found, test.want) {
			t.Errorf("%s: found %q, want %q", name, found, test.want)
		}
	}
}
