package history

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// A Recorder records the calls of callers of this process. It is safe for concurrent use.
type Recorder struct {
	clock  clock.Clock
	leases atomic.Int64 // so far

	mu      sync.Mutex
	ops     []*Op
	effects []Effect
}

// NewRecorder returns a Recorder without calls.
func NewRecorder() *Recorder { return &Recorder{clock: clock.New()} }

// History returns a copy of what was recorded.
func (r *Recorder) History() History { return r.where(func(string) bool { return true }) }

// Of returns the history of one key.
func (r *Recorder) Of(key string) History { return r.where(func(of string) bool { return of == key }) }

func (r *Recorder) where(such func(key string) bool) (h History) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, op := range r.ops {
		if such(op.Key) {
			h.Ops = append(h.Ops, *op)
		}
	}
	for _, effect := range r.effects {
		if such(effect.Key) {
			h.Effects = append(h.Effects, effect)
		}
	}
	return h
}

// Take returns what was recorded, and removes it.
func (r *Recorder) Take() History {
	h := r.History()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops, r.effects = nil, nil
	return h
}

// Effect records an effect that happens now.
func (r *Recorder) Effect(e Effect) {
	e.At = clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.effects = append(r.effects, e)
}

// Begin records that a call begins. End completes the record.
func (r *Recorder) Begin(op Op) *Op {
	op.Call = clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, &op)
	return &op
}

// End records what a call returned. The function change completes the record; it may be nil.
func (r *Recorder) End(op *Op, outcome Outcome, change func(op *Op)) {
	now := clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	op.Return, op.Outcome = now, outcome
	if change != nil {
		change(op)
	}
}

// Lock locks the key of an Op, and records the call from its start. Without an error the caller
// must end the lease.
func (r *Recorder) Lock(ctx context.Context, locks *core.Locker, op Op) (*Lease, error) {
	op.Kind = Lock
	call := r.Begin(op)
	lease, err := locks.Lock(ctx, op.Key)
	if err != nil {
		r.End(call, OutcomeOf(err, Granted), nil)
		return nil, err
	}
	return r.granted(call, lease), nil //nolint:contextcheck // the context of the lease is watched
}

// Granted records a lease that its caller was granted just now, by a call that was not recorded.
func (r *Recorder) Granted(op Op, lease *core.Lease) *Lease {
	op.Kind, op.Key = Lock, lease.Key()
	return r.granted(r.Begin(op), lease)
}

func (r *Recorder) granted(call *Op, lease *core.Lease) *Lease {
	name := strconv.FormatInt(r.leases.Add(1), 10)
	l := &Lease{Lease: lease, recorder: r, grant: call, informed: make(chan struct{})}
	r.End(call, Granted, func(op *Op) {
		op.Lease, op.Episode, op.Fence = name, lease.Token(), lease.Fence()
	})
	l.stop = context.AfterFunc(lease.Context(), func() {
		l.lost.Store(clock.Now())
		close(l.informed)
	})
	return l
}

// A Lease is a lease whose end is recorded.
type Lease struct {
	*core.Lease
	recorder *Recorder
	grant    *Op
	lost     atomic.Int64  // when the context of the lease ended
	informed chan struct{} // closed when lost is set
	stop     func() bool   // stops the watch of the context, and reports whether it had not ended
	ended    atomic.Bool
}

// Name names the holder.
func (l *Lease) Name() string { return l.grant.Name }

// LostAt returns when the context of the lease ended, and the zero time if it has not.
func (l *Lease) LostAt() time.Time {
	at := l.lost.Load()
	if at == 0 {
		return time.Time{}
	}
	return l.recorder.clock.At(at)
}

// Release releases the lease and records its end.
func (l *Lease) Release(ctx context.Context) error {
	end := l.end()
	err := l.Lease.Release(ctx)
	l.recorder.End(end, OutcomeOf(err, Done), nil)
	return err
}

// End records that the caller no longer relies on the lease, which others release.
func (l *Lease) End() {
	end := l.end()
	l.recorder.End(end, OutcomeOf(context.Cause(l.Context()), Done), nil)
}

func (l *Lease) end() *Op {
	until := min(clock.Now(), l.recorder.clock.Of(l.ValidUntil()))
	if !l.ended.Swap(true) && !l.stop() {
		<-l.informed
		until = min(until, l.lost.Load())
	}
	g := l.grant
	return l.recorder.Begin(Op{Process: g.Process, Client: g.Client, Name: g.Name, Kind: Release, Key: g.Key, Lease: g.Lease, ReliedUntil: until})
}
