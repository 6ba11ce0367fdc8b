package engine

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// enter checks a grant. A lease that Redis had granted before it lost the key is not counted.
func (run *randomRun) enter(h *Hold) {
	run.granted++
	if h.request.Attempt != nil {
		if run.running[h.engine] > 0 && !h.request.Attempt.Rerun {
			run.Error("an attempt begins beside another one of its process")
		}
		run.running[h.engine]++
	}
	if h.request.Attempt != nil && !run.uncertain {
		if h.Number() != run.died+1 || run.answer != "" || run.died > 0 && !h.request.Attempt.Rerun {
			run.Errorf("attempt %d after %d that died, and the answer %q", h.Number(), run.died, run.answer)
		}
	}
	if h.grantedAt().Before(run.lostAt.Add(bound)) || h.Context().Err() != nil {
		return
	}
	run.holders[h] = true
	places, of := 0, make(map[store.Limit]int)
	for other := range run.holders {
		limit := other.request.Limit
		of[limit]++
		places = max(places, placesOf(other.Token()))
	}
	if len(run.holders) > places || of[h.request.Limit] > placesOf(h.Token()) || of[store.Exclusive] > 0 && len(run.holders) > 1 {
		run.Errorf("holders by their limits: %v", of)
	}
	switch fence := h.Fence(); {
	case !h.request.Fencing:
	case fence < run.fence, fence == run.fence && !h.request.Limit.IsShared():
		run.Errorf("fence %d of limit %d after %d", fence, h.request.Limit, run.fence)
	default:
		run.fence = fence
	}
}

// grantedAt returns when the lease of the hold was granted.
func (h *Hold) grantedAt() time.Time {
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	return h.lease.begun
}

// checkCount fails the test unless the list of the hold counts its leases with a holder.
func (h *Hold) checkCount(t testing.TB) {
	t.Helper()
	h.shard.mu.Lock()
	defer h.shard.mu.Unlock()
	l, n := h.lease.queue.waitlist, 0
	for _, q := range h.lease.queue.root.allQueues() {
		if q.waitlist == l && q.hasHolder() {
			n++
		}
	}
	if l.holders != n {
		t.Errorf("limit %d: %d leases have a holder, counted %d", l.limit, n, l.holders)
	}
}
