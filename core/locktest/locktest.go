package locktest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/reqlock/reqlock/core"
)

const (
	// grace is how long the end of a test waits for locks that are just being
	// released.
	grace = 100 * time.Millisecond
	// commandTimeout takes the place of core's default. Nothing in memory is
	// slow but a machine that is busy with other tests, and that is no fault.
	commandTimeout = 2 * time.Second
)

// Locks is a Locker on an embedded Redis of its own, for one test. The Locker
// itself is the field that goes to the code under test.
//
// All methods are safe for concurrent use. Those that can fail the test must
// be called, as tb.Fatal must, by the goroutine that runs it.
type Locks struct {
	// Locker is the one to test with.
	*core.Locker

	tb     testing.TB
	opts   []core.Option
	redis  *miniredis.Miniredis
	tested *process // the Locker's
	other  *process // another one, with the same settings
	lines  *lines
}

// New starts an embedded Redis and returns a Locker on it with these options.
// When the test ends, the Locker is closed and the Redis with it; a lease that
// is still held then is lost with core.ErrClosed. A bad option fails the test.
//
// The defaults are those of core.New, but for core.WithCommandTimeout: it is
// 2 s, so that a busy machine is not taken for a fault of Redis.
//
// An observer among the options also hears of the locks that Hold, Abandon and
// Expire take for their ends.
//
// To be used in a bubble of testing/synctest, New must be called inside it.
func New(tb testing.TB, opts ...core.Option) *Locks {
	tb.Helper()
	opts = append([]core.Option{core.WithCommandTimeout(commandTimeout)}, opts...)
	l := &Locks{tb: tb, opts: opts, redis: newRedis(), lines: newLines()}
	l.tested = l.start(append(slices.Clip(opts), core.WithObserver(l.lines.observe))...)
	l.other = l.start(opts...)
	l.Locker = l.tested.locker
	tb.Cleanup(l.end)
	return l
}

// start returns a process on the test's Redis. A bad option fails the test.
func (l *Locks) start(opts ...core.Option) *process {
	l.tb.Helper()
	p, err := newProcess(l.redis, opts)
	if err != nil {
		l.tb.Fatalf("locktest: %v", err)
	}
	return p
}

// end closes everything. What the test still holds is not waited for.
func (l *Locks) end() {
	l.tested.end(grace)
	l.other.end(0)
	l.redis.Close()
}

// A process is a Locker with a connection to Redis that it shares with nobody.
type process struct {
	locker *core.Locker
	link   *link
}

// newProcess returns a process on the server.
func newProcess(server *miniredis.Miniredis, opts []core.Option) (*process, error) {
	link := newLink(server)
	locker, err := core.New(link.client, opts...)
	if err != nil {
		link.close()
		return nil, err
	}
	return &process{locker: locker, link: link}, nil
}

// end closes the Locker, and its link after it. It gives holders some time to
// release.
func (p *process) end(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = p.locker.Close(ctx) // its error says that a lease was still held
	p.link.close()
}
