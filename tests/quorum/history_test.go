package quorum

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A hold is a turn on a key, as its holder has seen it.
type hold struct {
	by      string
	granted time.Time // the holder has heard of it
	ended   time.Time // it could not be believed in any more
}

// A history is all holds of some keys. It is safe for concurrent use.
type history struct {
	mu    sync.Mutex
	holds map[string][]hold
}

func newHistory() *history { return &history{holds: map[string][]hold{}} }

func (h *history) add(key string, one hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds[key] = append(h.holds[key], one)
}

// overlaps returns the holds that were granted while another of the same key was
// believed in. One that was over when its holder heard of it was never believed in.
func (h *history) overlaps() (faults []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, holds := range h.holds {
		holds = slices.DeleteFunc(slices.Clone(holds), func(one hold) bool { return !one.granted.Before(one.ended) })
		slices.SortFunc(holds, func(a, b hold) int { return a.granted.Compare(b.granted) })
		var last hold // the one that ends last so far
		for _, one := range holds {
			if one.granted.Before(last.ended) {
				faults = append(faults, fmt.Sprintf("%s: %s was granted %v before the end of %s",
					key, one.by, last.ended.Sub(one.granted), last.by))
			}
			if one.ended.After(last.ended) {
				last = one
			}
		}
	}
	return faults
}

// judge fails the test with the overlaps, and forgets all holds.
func (h *history) judge(t *testing.T) {
	t.Helper()
	for _, fault := range h.overlaps() {
		t.Error(fault)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.holds)
}

// section is what is done under the lock whose lease the context carries. It lasts
// so long, or until the lease ends.
func (h *history) section(ctx context.Context, by string, lasts time.Duration) {
	granted := time.Now()
	lease, _ := core.FromContext(ctx)
	timer := time.NewTimer(lasts)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	h.add(lease.Key(), hold{by, granted, earlier(time.Now(), lease.ValidUntil())})
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
