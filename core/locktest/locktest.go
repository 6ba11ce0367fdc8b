package locktest

import (
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/reqlock/reqlock/core"
)

const (
	// grace is how long the end of a test waits for releases that are under way.
	grace = 100 * time.Millisecond
	// commandTimeout replaces core's default. Commands in memory are slow only on a busy
	// machine, and a busy machine must not look like a fault of Redis.
	commandTimeout = 2 * time.Second
)

// Locks is a Locker on its own embedded Redis, for one test. Give the field Locker to the code
// under test.
//
// All methods are safe for concurrent use. Call the methods that can fail the test on the
// goroutine of the test, as tb.Fatal.
type Locks struct {
	// Locker is for the code under test.
	*core.Locker

	tb     testing.TB
	opts   []core.Option
	redis  *miniredis.Miniredis
	tested *process // has the Locker
	other  *process // has another Locker with the same settings
	queues *queues
}

// New starts an embedded Redis and returns a Locker on it with these options. When the test
// ends, the Locker and the Redis are closed. A lease that is still held is lost with
// core.ErrClosed. An invalid option fails the test.
//
// The defaults are the same as in core.New, with two exceptions. core.WithCommandTimeout
// is 2 s, so that a busy machine does not look like a fault of Redis. core.WithFailFast is 0,
// so that the first call after Up succeeds.
//
// An observer among the options also receives the events of locks that Hold, Abandon and
// Expire take.
//
// To use Locks in a bubble of testing/synctest, call New inside the bubble.
func New(tb testing.TB, opts ...core.Option) *Locks {
	tb.Helper()
	opts = append([]core.Option{core.WithCommandTimeout(commandTimeout), core.WithFailFast(0)}, opts...)
	l := &Locks{tb: tb, opts: opts, redis: newRedis(), queues: newQueues()}
	l.tested = l.start(append(slices.Clip(opts), core.WithObserver(l.queues.observe))...)
	l.other = l.start(opts...)
	l.Locker = l.tested.locker
	tb.Cleanup(l.end)
	return l
}

// Down cuts the connections of the Locker to Redis and refuses new connections, until Up.
// Every call that needs Redis ends with core.ErrUnavailable. A lease that cannot be renewed
// is lost with core.ErrLost.
//
// The keys stay in Redis until their TTL ends, as behind a broken network. Other processes
// are not cut off: Hold, Abandon and Expire work as before.
func (l *Locks) Down() { l.tested.link.cut() }

// Up lets the Locker connect to Redis again.
func (l *Locks) Up() { l.tested.link.mend() }

// start returns a process on the test's Redis. An invalid option fails the test.
func (l *Locks) start(opts ...core.Option) *process {
	l.tb.Helper()
	p, err := newProcess(l.redis, opts)
	if err != nil {
		l.tb.Fatalf("locktest: %v", err)
	}
	return p
}

// end closes everything. It does not wait for leases that the test still holds.
func (l *Locks) end() {
	l.tested.end(grace)
	l.other.end(0)
	l.redis.Close()
}

// newRedis returns an embedded Redis without a listener. Its TTLs follow the clock of the
// test, or the clock of the bubble inside one.
func newRedis() *miniredis.Miniredis {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	return server
}
