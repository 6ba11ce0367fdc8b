package failover

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// The words of a process, about a key.
const (
	handed    = "handed"         // another process handed a lock over, and told it
	waiting   = "waiting"        // a request waits for another one
	lost      = "lost"           // a lease has ended under its holder
	lateLoss  = "released, lost" // or its holder has heard of it by its release
	committed = "committed"
	restored  = "restored" // it was, and there was no record any more
	refused   = "refused"  // it was not committed: another one has begun
	unstored  = "unstored" // it was not committed: Redis was not there
)

// A process is a Locker with a client of its own, and what its observer was told.
type process struct {
	locks *core.Locker

	words tally
}

// newProcess returns a process with that client. It is closed with the test, which
// fails if that does not end.
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
		p.note(waiting, event)
	case core.Acquired:
		if event.Handover == core.Handed {
			p.note(handed, event)
		}
	case core.Lost:
		p.note(lost, event)
	case core.Released:
		if errors.Is(event.Err, core.ErrLost) {
			p.note(lateLoss, event)
		}
	case core.Restored:
		p.note(restored, event)
	case core.Committed:
		switch {
		case event.Err == nil:
			p.note(committed, event)
		case errors.Is(event.Err, core.ErrLost):
			p.note(refused, event)
		default:
			p.note(unstored, event)
		}
	}
}

func (p *process) note(word string, event core.Event) { p.words.add(word + " " + event.Key.Raw()) }

// told returns how often the process was told this of a key.
func (p *process) told(word, key string) int { return p.words.of(word + " " + key) }
