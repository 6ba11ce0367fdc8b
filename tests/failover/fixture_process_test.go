package failover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// The events of a key that a process counts.
const (
	handed      = "handed" // another process handed the lock over, with a notification
	waiting     = "waiting"
	committed   = "committed"
	restored    = "restored"    // committed after the record was lost
	superseded  = "superseded"  // not committed: another attempt has begun
	uncommitted = "uncommitted" // not committed: Redis was unavailable
)

// A process is a Locker with a client of its own, and counts of its events.
type process struct {
	locks  *core.Locker
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
	var name string
	switch {
	case event.Kind == core.Waiting:
		name = waiting
	case event.Kind == core.Acquired && event.Grant == core.GrantHanded:
		name = handed
	case event.Kind == core.Restored:
		name = restored
	case event.Kind == core.Committed && event.Err == nil:
		name = committed
	case event.Kind == core.Committed && errors.Is(event.Err, core.ErrLost):
		name = superseded
	case event.Kind == core.Committed:
		name = uncommitted
	default:
		return
	}
	p.events.add(name + " " + event.Key.Raw())
}

// count returns how often the event of a key occurred.
func (p *process) count(name, key string) int { return p.events.of(name + " " + key) }

// A counter counts events by their names. It is safe for concurrent use, and its zero
// value is ready.
type counter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *counter) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[name]++
}

func (c *counter) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[name]
}

// String lists the counts.
func (c *counter) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.counts)) {
		all = append(all, fmt.Sprintf("%d %s", c.counts[name], name))
	}
	return strings.Join(all, ", ")
}

// turn waits for a lock and holds it for a moment. It waits until the end of the
// scenario, because the replacement of the master may take any time on a busy machine.
// The part that calls turn awaits its return once the deployment is healthy.
func (s *scenario) turn(p *process, holder, key string) {
	locks := p.locks.With(core.WithTTL(shortTTL), core.WithFencing(true))
	lease, err := s.history.Lock(s.ctx, locks, history.Op{Name: holder, Key: key})
	if err != nil {
		if !s.isAborted() {
			s.t.Errorf("%s on %s was not served: %v", holder, key, err)
		}
		return
	}
	time.Sleep(s.ledger.runTime)
	err = lease.Release(s.ctx)
	if err != nil && !errors.Is(err, core.ErrLost) && !errors.Is(err, core.ErrUnavailable) {
		s.t.Errorf("%s on %s: released with %v", holder, key, err)
	}
}
