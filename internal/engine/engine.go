package engine

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/store"
)

// shardCount spreads the lines over this many mutexes.
const shardCount = 64

// A Config is what an Engine is made with.
type Config struct {
	// Process is the process id: it stands before the colon of each token and
	// must be this engine's alone.
	Process string
	// Bound is how long a command may take; a quarter of its TTL at most.
	Bound time.Duration
	// MaxWaiters bounds how many callers wait for one key, and MaxTotalWaiters
	// how many for all keys together.
	MaxWaiters, MaxTotalWaiters int
	// Ballots gives each question a token of its own: the store votes, and gives
	// up those that were not granted.
	Ballots bool
	// Hooks are how the engine speaks to its owner.
	Hooks Hooks
}

// Engine runs the lines of one process. It is safe for concurrent use.
type Engine struct {
	store     store.Store
	hooks     Hooks
	process   string
	bound     time.Duration
	ballots   bool
	limits    limits
	tokens    atomic.Uint64
	discards  discardSet
	seed      maphash.Seed
	shards    [shardCount]shard
	schedule  schedule
	renewals  renewalLimiter
	work      inflight.Counter // holds, and goroutines of the engine
	closing   chan struct{}    // closed when Close begins
	closeOnce sync.Once        // guards the closing of it
}

// A shard is a part of the lines and the mutex that guards them, with all that
// hangs from them.
type shard struct {
	mu       sync.Mutex
	closed   bool
	queues   map[string]*queue
	recycled []*queue
}

// New returns an Engine on the store. It starts no goroutine.
func New(s store.Store, c Config) *Engine {
	e := &Engine{
		store:   s,
		hooks:   c.Hooks,
		process: c.Process,
		bound:   c.Bound,
		ballots: c.Ballots,
		limits:  limits{perKey: c.MaxWaiters, total: c.MaxTotalWaiters},
		seed:    maphash.MakeSeed(),
		closing: make(chan struct{}),
	}
	for i := range e.shards {
		e.shards[i].queues = make(map[string]*queue)
	}
	e.schedule.onDue = e.onDue
	s.OnHint(e.onHint)
	s.OnLateGrant(e.onLateGrant)
	return e
}

// shardOf returns the shard in which a key's line is.
func (e *Engine) shardOf(key string) *shard {
	return &e.shards[maphash.String(e.seed, key)%shardCount]
}

// boundOf returns how long a command for a lease of this TTL may take.
func (e *Engine) boundOf(ttl time.Duration) time.Duration { return min(e.bound, ttl/4) }

// longestClaim is how long a process has to confirm that a key was handed to
// it, if its commands may not take longer than a quarter of that.
const maxClaim = time.Second

// claimOf returns how long the key of a lease of this TTL stays with a process
// to which it was handed, until that confirms it. The pause of a process, its
// confirmation and one re-send have to fit in.
func (e *Engine) claimOf(ttl time.Duration) time.Duration {
	return max(min(ttl, maxClaim), 4*e.boundOf(ttl))
}

// Close refuses newcomers and waiters, who leave their lines, and waits for the
// holders to release or lose their leases, and for all commands to end. When
// ctx ends first, it cancels the contexts of the remaining holders, whose keys
// are left to their TTL, and returns ctx's error.
func (e *Engine) Close(ctx context.Context) error {
	e.eachShard(func(s *shard) {
		s.closed = true
		for _, q := range s.queues {
			q.refuseAll(&Refusal{Reason: ClosedDown})
			q.wake()
		}
	})
	e.closeOnce.Do(func() { close(e.closing) })
	defer e.schedule.stop()
	if err := e.work.Wait(ctx); err != nil {
		e.loseAll()
		_ = e.store.Close(ctx) // it listens no more; its error is that of ctx
		return err
	}
	if err := e.store.Close(ctx); err != nil {
		return err
	}
	// What was left behind may have won, and have been undone.
	if err := e.work.Wait(ctx); err != nil {
		return err
	}
	return e.store.Close(ctx)
}

// loseAll ends every lease whose holder has not come back.
func (e *Engine) loseAll() {
	var after callbacks
	e.eachShard(func(s *shard) {
		for _, q := range s.queues {
			if q.lease != nil && q.lease.holder != nil {
				q.lose(Closed, &after)
			}
		}
	})
	after.run()
}

// eachShard calls f under the mutex of each shard.
func (e *Engine) eachShard(f func(*shard)) {
	for i := range e.shards {
		s := &e.shards[i]
		s.mu.Lock()
		f(s)
		s.mu.Unlock()
	}
}

// spawn runs f on a goroutine that Close waits for.
func (e *Engine) spawn(f func()) {
	e.work.Add()
	go func() {
		defer e.work.Done()
		f()
	}()
}

// afterwards collects what is to be done once a shard's mutex is free: calls
// of the owner's code, above all, and then the end of a release.
type callbacks struct {
	calls []func()
	done  chan struct{} // to close; nil if no release has ended
}

func (a *callbacks) add(f func()) { a.calls = append(a.calls, f) }

func (a *callbacks) run() {
	for _, f := range a.calls {
		f()
	}
	if a.done != nil {
		close(a.done) // last: who waits for it has been told all
	}
}

// runAside is run on a goroutine of the store, whose other answers must not
// wait for an observer.
func (a *callbacks) runAsync(e *Engine) {
	if e.hooks.Observe == nil || len(a.calls) == 0 {
		a.run()
		return
	}
	aside := *a
	e.spawn(aside.run)
}

// Aside runs f on a goroutine that Close waits for. It returns false, and does
// not run it, where Close has begun.
func (e *Engine) Go(f func()) bool {
	if !e.addWork() {
		return false
	}
	go func() {
		defer e.work.Done()
		f()
	}()
	return true
}

// begin counts a piece of work, unless Close has begun. It looks twice. The second
// look, after the count, makes a Close that begins in between wait for the work.
// The first look keeps callers of a closed engine from the count: Close waits
// until the count is zero, and with many callers in a loop it never would be.
func (e *Engine) addWork() bool {
	if e.isClosing() {
		return false
	}
	e.work.Add()
	if e.isClosing() {
		e.work.Done()
		return false
	}
	return true
}

// isClosing reports whether Close has begun.
func (e *Engine) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}
