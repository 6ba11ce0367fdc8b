package failover

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// The events of a key that a process counts.
const (
	handed        = "handed" // another process handed the lock over, with a notification
	waiting       = "waiting"
	lost          = "lost"            // a lease ended while it was held
	lostAtRelease = "lost at release" // the release found that the lease was lost
	committed     = "committed"
	restored      = "restored"    // committed after the record was lost
	superseded    = "superseded"  // not committed: another attempt has begun
	uncommitted   = "uncommitted" // not committed: Redis was unavailable
)

// A process is a Locker with a client of its own, and counts of its events.
type process struct {
	locks *core.Locker

	events counter
}

// newProcess returns a process with this client. It is closed with the test, which fails
// if Close does not return.
func newProcess(t *testing.T, client redis.UniversalClient, opts ...core.Option) *process {
	t.Helper()
	p := &process{}
	p.locks = core.Must(core.New(client, append(opts, core.WithObserver(p.observe))...))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := p.locks.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

func (p *process) observe(event core.Event) {
	switch event.Kind {
	case core.Waiting:
		p.add(waiting, event)
	case core.Acquired:
		if event.Handover == core.Handed {
			p.add(handed, event)
		}
	case core.Lost:
		p.add(lost, event)
	case core.Released:
		if errors.Is(event.Err, core.ErrLost) {
			p.add(lostAtRelease, event)
		}
	case core.Restored:
		p.add(restored, event)
	case core.Committed:
		switch {
		case event.Err == nil:
			p.add(committed, event)
		case errors.Is(event.Err, core.ErrLost):
			p.add(superseded, event)
		default:
			p.add(uncommitted, event)
		}
	}
}

func (p *process) add(name string, event core.Event) { p.events.add(name + " " + event.Key.Raw()) }

// count returns how often the event of a key occurred.
func (p *process) count(name, key string) int { return p.events.of(name + " " + key) }
