package quorum

import (
	"sync"
	"testing"
	"time"
)

const (
	// beat is how often a pulse is felt.
	beat = 20 * time.Millisecond
	// stall is how long it may be away at most on a machine that is only busy: a command
	// that is late by as much on its way, and on its way back, has not been answered in
	// time.
	stall = ttl / 8
)

// A pulse notices when the machine gives this process no time, with its Lockers and
// the network before the nodes. All nodes look ill then. It is safe for concurrent use.
type pulse struct {
	mu      sync.Mutex
	last    time.Time // when it was felt
	stalled time.Time // when it came back after it was away, the last time
}

// startPulse starts a pulse, until the end of the test.
func startPulse(t *testing.T) *pulse {
	t.Helper()
	p := &pulse{last: time.Now()}
	over := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(beat)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				p.feel(time.Now())
			}
		}
	})
	t.Cleanup(func() {
		close(over)
		done.Wait()
	})
	return p
}

// feel feels the pulse at a time that is now.
func (p *pulse) feel(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.last) > beat+stall {
		p.stalled = now
	}
	p.last = now
}

// wasAway reports whether the pulse was away for too long at any time since then.
func (p *pulse) wasAway(since time.Time) bool {
	p.feel(time.Now()) // who asks may be the first one to go on
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stalled.After(since)
}

func TestOnlyALongTimeWithoutAPulseIsAnExcuse(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	p := &pulse{last: begun.Add(-beat - stall)}
	p.feel(begun)
	if !p.stalled.IsZero() {
		t.Error("it was away for no longer than it may be")
	}
	p.feel(begun.Add(beat + stall + 1))
	if !p.wasAway(begun) {
		t.Error("it was away, and nobody noticed")
	}
	if p.wasAway(p.stalled) {
		t.Error("it was away before that time only")
	}
}
