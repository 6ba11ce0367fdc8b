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

// shardCount is how many mutexes guard the queues.
const shardCount = 64

// A Config is the configuration of an Engine.
type Config struct {
	// Process is the process id. It stands before the colon of each token, and no other
	// engine may use it.
	Process string
	// Bound is how long a command may take; a command takes a quarter of its TTL at
	// most.
	Bound time.Duration
	// MaxTotalWaiters limits the waiters for all keys together.
	MaxTotalWaiters int
	// MaxOpenCommits and MaxOpenBytes limit the open commits, and their bytes: see openCommit.
	MaxOpenCommits int
	MaxOpenBytes   int64
	// FailFast is after how long without a reply new callers are refused at once: see
	// refuseUnserved. 0 is never.
	FailFast time.Duration
	// Ballots gives each request for a key its own token, for a store that votes: that
	// withdraws a ballot that was not granted.
	Ballots bool
	// Hooks connect the engine to its owner.
	Hooks Hooks
}

// Engine runs the queues of one process. It is safe for concurrent use.
type Engine struct {
	store     store.Store
	hooks     Hooks
	process   string
	bound     time.Duration
	ballots   bool
	failFast  time.Duration
	limits    limits
	tokens    atomic.Uint64
	discards  discardSet
	later     laterSet
	seed      maphash.Seed
	shards    [shardCount]shard
	schedule  schedule
	renewals  renewalLimiter
	events    eventQueue
	work      inflight.Counter // holds, and goroutines of the engine
	cutOff    inflight.Counter // attempts that Close has cut off, and that have not ended
	open      openCommits
	comparer  store.Comparer // the store, or nil if it cannot compare keys: see watch.go
	ended     chan struct{}  // closed always: the done of a release that has its result at once
	closing   chan struct{}  // closed when Close begins
	closeOnce sync.Once      // guards close(closing)
}

// A shard is a part of the queues, and the mutex that guards them with all their leases
// and holds.
type shard struct {
	mu       sync.Mutex
	closed   bool
	queues   map[string]*queue // the roots, by key
	recycled []*queue
	arrivals uint64 // counts the callers
	// contended has the keys that were handed to other processes, with the times: see noteContended.
	contended map[string]time.Time
	watching  watching
}

// New returns an Engine on the store. It starts no goroutine.
func New(s store.Store, c Config) *Engine {
	e := &Engine{
		store:   s,
		hooks:   c.Hooks,
		process: c.Process,
		bound:   c.Bound,
		ballots: c.Ballots, failFast: c.FailFast,
		limits:  limits{total: c.MaxTotalWaiters},
		open:    openCommits{maxCount: int64(c.MaxOpenCommits), maxBytes: c.MaxOpenBytes},
		seed:    maphash.MakeSeed(),
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
	}
	if comparer, ok := s.(store.Comparer); ok && comparer.CanCompare() {
		e.comparer = comparer
	}
	close(e.ended)
	for i := range e.shards {
		e.shards[i].queues = make(map[string]*queue)
	}
	e.schedule.onDue = e.onDue
	s.OnHint(e.onHint)
	s.OnLateGrant(e.onLateGrant)
	s.OnWarning(e.onWarning)
	if e.hooks.Observe != nil {
		s.OnOutage(e.onOutage)
	}
	if e.failFast > 0 || e.hooks.Observe != nil {
		s.Watch()
	}
	return e
}

// shardOf returns the shard of a key's queue.
func (e *Engine) shardOf(key string) *shard {
	return &e.shards[maphash.String(e.seed, key)%shardCount]
}

// boundOf returns how long a command for a lease of this TTL may take.
func (e *Engine) boundOf(ttl time.Duration) time.Duration { return min(e.bound, ttl/4) }

// maxClaim is how long a process has to confirm that a key was handed to it. Exception:
// four command bounds, if those are longer.
const maxClaim = time.Second

// claimOf returns how long a key stays with a process to which it was handed, until
// that process confirms it. The pause of a process, its confirmation and one resend
// must fit in.
func (e *Engine) claimOf(ttl time.Duration) time.Duration {
	return max(min(ttl, maxClaim), 4*e.boundOf(ttl))
}

// Close refuses new callers and waiters, and gives up their places in the store's
// queue. It waits until the holders have released or lost their leases, and until all
// commands have ended, and for open commits: see awaitWork. When ctx ends first, it
// cancels the contexts of the remaining holders, leaves their keys to the TTL, and returns
// an error that wraps ctx's error and says what was not finished.
func (e *Engine) Close(ctx context.Context) error {
	e.eachShard(func(s *shard) {
		s.closed = true
		for _, root := range s.queues {
			for _, q := range root.allQueues() {
				q.refuseAll(&Refusal{Reason: ClosedDown})
				q.wake()
			}
		}
	})
	e.closeOnce.Do(func() { close(e.closing) })
	defer e.schedule.stop()
	if held := e.held(); held.Holds > 0 {
		held.Context = &ctx
		e.observe(held)
	}
	if err := e.awaitWork(ctx); err != nil {
		err = e.unfinished(err)
		e.endOpen(true)
		e.loseAll()
		e.awaitCutOff(ctx)
		_ = e.store.Close(ctx) // stops listening; its error is that of ctx
		return err
	}
	if err := e.store.Close(ctx); err != nil {
		return err
	}
	// A command that was left behind may have locked a key, which was released then.
	if err := e.work.Wait(ctx); err != nil {
		return err
	}
	return e.store.Close(ctx)
}

// cutOffTime is how long Close gives the attempts that it has cut off to end: what their handlers
// know is a round trip away from the store.
const cutOffTime = time.Second

// awaitCutOff waits until they have ended.
func (e *Engine) awaitCutOff(ctx context.Context) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cutOffTime)
	defer cancel()
	_ = e.cutOff.Wait(limited)
}

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

// callbacks collects what to do after a shard's mutex is unlocked.
type callbacks struct {
	calls  []func()      // must not block
	events []Event       // for the owner
	done   chan struct{} // closed after the calls; nil if no release has ended
}

func (a *callbacks) add(f func()) { a.calls = append(a.calls, f) }

// run makes the calls. It never waits for the owner: the events go through the queue.
func (a *callbacks) run(e *Engine) {
	for _, f := range a.calls {
		f()
	}
	if a.done != nil {
		close(a.done)
	}
	for _, event := range a.events {
		e.observeLater(queuedEvent{Event: event})
	}
}

// Go runs f on a goroutine that Close waits for. It returns false, and does not run f,
// if Close has begun.
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

// addWork counts one piece of work, unless Close has begun. It checks twice. The second
// check, after the count, makes a Close that begins in between wait for the work. The
// first check keeps callers of a closed engine from the count: Close waits until the
// count is zero, and with many callers in a loop it never would be.
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

func (e *Engine) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}
