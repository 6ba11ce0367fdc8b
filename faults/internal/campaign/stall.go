package campaign

import (
	"sync"
	"time"

	"github.com/reqlock/reqlock/faults/internal/check"
	"github.com/reqlock/reqlock/faults/internal/clock"
	"github.com/reqlock/reqlock/faults/internal/history"
)

// stallStep is how often the machine is looked at.
const stallStep = 10 * time.Millisecond

// A stallWatch notices when the machine gives its processes no time: what they
// are late with then is not the lock's fault.
type stallWatch struct {
	end  chan struct{}
	done sync.WaitGroup
	seen []history.Trouble
}

// watchStalls begins to watch. A time without a tick that is longer than the
// patience, over what is normal, is a stall.
func watchStalls(patience time.Duration) *stallWatch {
	w := &stallWatch{end: make(chan struct{})}
	w.done.Go(func() {
		ticker := time.NewTicker(stallStep)
		defer ticker.Stop()
		last := clock.Now()
		for {
			select {
			case <-w.end:
				return
			case <-ticker.C:
			}
			now := clock.Now()
			w.seen = stalled(w.seen, last, now, patience)
			last = now
		}
	})
	return w
}

// stalled adds the time between two ticks, if it was a stall.
func stalled(seen []history.Trouble, last, now int64, patience time.Duration) []history.Trouble {
	if now-last <= (stallStep + patience).Nanoseconds() {
		return seen
	}
	return append(seen, history.Trouble{Name: check.Stalled + " machine", From: last, To: now})
}

// stop ends the watch, and returns the stalls. It may be called once.
func (w *stallWatch) stop() []history.Trouble {
	close(w.end)
	w.done.Wait()
	return w.seen
}
