package engine

import "time"

// The budget of local passing: after so many passes, or so long from the
// grant, the lease goes back to the store, so that other processes have their
// turn.
const (
	maxPasses   = 64
	maxPassTime = 50 * time.Millisecond
)

// A budget says how much longer a lease may be passed on in this process. It
// is without limit as long as no other process waits for the key. That is not
// known of a fresh lease, unless the store said so.
type budget struct {
	unlimited bool
	begun     time.Time
	passes    int
}

// over reports whether the lease has to go back.
func (b *budget) over(ttl time.Duration, now time.Time) bool {
	return !b.unlimited && (b.passes >= maxPasses || now.Sub(b.begun) >= min(ttl/4, maxPassTime))
}

// limit begins the budget of a lease that was without limit.
func (b *budget) limit(now time.Time) {
	if b.unlimited {
		*b = budget{begun: now}
	}
}

// lineSeen takes in how many wait in the store's line, as a command of that
// sending time saw it. The line is only known to be empty to a process that has
// listened since: whoever comes later tells it.
func (l *lease) lineSeen(waiting int, sent time.Time) {
	switch {
	case waiting > 0:
		l.wanted = true
		l.budget.limit(time.Now())
	case waiting == 0 && l.line.hears() && sent.After(l.line.told):
		l.budget.unlimited = true
	}
}
