package registry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
)

const (
	// Interval is the time from beat to beat.
	Interval = 10 * time.Second
	// SilentAfter is how long after its last beat a process counts as silent. Two beats in a row may fail.
	SilentAfter = 3 * Interval
	// TTL is how long a record lives after the last beat. So an operator still finds out which process
	// has died.
	TTL = time.Hour
)

// A Config says what a Beater writes, and where.
type Config struct {
	// Servers get one record each.
	Servers []redis.UniversalClient
	// Prefix and ID are those of the Locker.
	Prefix, ID string
	// Bound is how long a beat may take.
	Bound time.Duration
	// Record returns the record as it is now. It must not block.
	Record func() Process
	// Refused receives the first error that a server replies to a beat, unless a later beat can go
	// well by itself.
	Refused func(error)
}

// A Beater registers a process from its first lock until Stop. It is safe for concurrent use. A nil
// Beater does nothing.
type Beater struct {
	Config
	name          string
	ttl, interval time.Duration
	isRefused     atomic.Bool
	hasBegun      atomic.Bool
	ctx           context.Context // ends with Stop
	cancel        context.CancelFunc

	mu   sync.Mutex
	done chan struct{} // nil if there is no goroutine; closed by the goroutine at its end
}

// New returns a Beater. It does no I/O and starts no goroutine.
func New(c Config) *Beater {
	ctx, cancel := context.WithCancel(context.Background())
	return &Beater{Config: c, name: keyspace.New(c.Prefix).Process(c.ID), ttl: TTL, interval: Interval, ctx: ctx, cancel: cancel}
}

// Begin starts the goroutine of the beats, unless it or Stop was called before.
func (b *Beater) Begin() {
	if b != nil && !b.hasBegun.Load() {
		b.begin()
	}
}

func (b *Beater) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hasBegun.Swap(true) || b.ctx.Err() != nil {
		return
	}
	b.done = make(chan struct{})
	go b.run(b.ctx)
}

// Stop ends the beats and deletes the record. It waits for that as long as a beat may take. If the
// server does not reply, the record ends by its TTL. It may be called several times.
func (b *Beater) Stop() {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.cancel()
	done := b.done
	b.mu.Unlock()
	if done == nil {
		return
	}
	bound := time.NewTimer(b.Bound)
	defer bound.Stop()
	select {
	case <-done:
	case <-bound.C:
	}
}

// run writes the record until ctx ends, and deletes it then.
func (b *Beater) run(ctx context.Context) {
	defer close(b.done)
	beats := time.NewTicker(b.interval)
	defer beats.Stop()
	for ctx.Err() == nil {
		b.beat(ctx)
		select {
		case <-beats.C:
		case <-ctx.Done():
		}
	}
	b.each(context.WithoutCancel(ctx), func(ctx context.Context, rdb redis.UniversalClient) error { return remove(ctx, rdb, b.name) })
}

// beat writes the record to each server.
func (b *Beater) beat(ctx context.Context) {
	p := b.Record()
	b.each(ctx, func(ctx context.Context, rdb redis.UniversalClient) error { return write(ctx, rdb, b.name, &p, b.ttl) })
}

// each calls a function for each server at the same time, so that one that does not reply delays no
// other.
func (b *Beater) each(ctx context.Context, send func(context.Context, redis.UniversalClient) error) {
	ctx, cancel := context.WithTimeout(ctx, b.Bound)
	defer cancel()
	var servers sync.WaitGroup
	for _, rdb := range b.Servers[1:] {
		servers.Go(func() { b.note(send(ctx, rdb)) })
	}
	b.note(send(ctx, b.Servers[0]))
	servers.Wait()
}

// note reports the first error of a server that says that no beat can go well. The events and the
// log of the locks are about all other errors.
func (b *Beater) note(err error) {
	if err != nil && !command.NewFault(err, false).Temporary && !command.IsLost(err) && !b.isRefused.Swap(true) {
		b.Refused(command.Sanitize(err))
	}
}
