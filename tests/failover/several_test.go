package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/core"
)

// several is the part of requests that need the locks of several keys at once, of
// all masters. Others need only one of these keys.
type several struct {
	*scene
	keys    []string
	callers sync.WaitGroup
	stop    chan struct{}
	served  atomic.Int64
	last    atomic.Pointer[time.Time] // when the last of them was served
	codes   tally
}

func (v *several) begin() {
	v.stop = make(chan struct{})
	for _, master := range v.masters() {
		v.keys = append(v.keys, v.keysAt(master, v.name+"-several", 1)...)
	}
	if len(v.keys) == 1 {
		v.keys = v.keysAt(v.master, v.name+"-several", 2)
	}
	v.group.Go(func() { // also where the scene is broken off
		<-v.ctx.Done()
		v.callers.Wait()
	})
	for n := range 2 {
		p, keys := v.process(n, core.WithWait(streamWait), core.WithTTL(shortTTL)), slices.Clone(v.keys)
		if n > 0 {
			slices.Reverse(keys)
		}
		v.callers.Go(func() { v.call(p, fmt.Sprintf("process %d for all keys", n), keys) })
		v.callers.Go(func() { v.call(p, fmt.Sprintf("process %d for one key", n), keys[:1]) })
	}
	await(v.t, "requests for several keys run", func() bool { return v.served.Load() > 10 })
}

// call sends request after request.
func (v *several) call(p *process, by string, keys []string) {
	for v.ctx.Err() == nil {
		select {
		case <-v.stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
		v.once(p, by, keys)
	}
}

// once sends one request, which runs with all keys or is refused.
func (v *several) once(p *process, by string, keys []string) {
	ran, told := 0, false
	var granted time.Time
	var ended map[string]time.Time
	err := p.locks.DoAll(context.Background(), keys, func(ctx context.Context) error {
		ran++
		granted = time.Now()
		time.Sleep(v.ledger.takes)
		ended = endsOf(ctx, p.locks, keys)
		told = len(ended) < len(keys)
		return nil
	})
	isLost := errors.Is(err, core.ErrLost)
	switch {
	case ran > 1, ran == 0 && err == nil, ran == 1 && err != nil && !isLost, told && err == nil:
		v.t.Errorf("%s: %d runs, told of a loss %v, and %v", by, ran, told, err)
	case ran == 0:
		if isLost || !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrWaitTimeout) {
			v.t.Errorf("%s: no row of the table: %v", by, err)
		}
		v.codes.add(fmt.Sprintf("of %d keys refused", len(keys)))
		return
	}
	if len(keys) > 1 && err == nil {
		v.served.Add(1)
		v.last.Store(&granted)
	}
	// Where data is lost, or may be, one that runs for a moment is not told.
	if v.failure.loss == nothing && !told {
		for key, end := range ended {
			v.history.add(hold{key: key, by: by, granted: granted, ended: end})
		}
	}
}

// endsOf returns until when the locks of these keys could be believed in by who holds
// them now: until now, or until the lease of the key ended, if its holder is not told
// yet. Those after one of which it is told are missing.
func endsOf(ctx context.Context, locks *core.Locker, keys []string) map[string]time.Time {
	ends, now := make(map[string]time.Time, len(keys)), time.Now()
	for _, key := range keys {
		// The lease of the context is that of the first key. Where the context holds the
		// key, this one is that of the key itself: no command is sent for it.
		lease, err := locks.TryLock(ctx, key)
		if err != nil {
			break
		}
		ends[key] = now
		if until := lease.ValidUntil(); until.Before(now) {
			ends[key] = until
		}
		if err := lease.Release(ctx); err != nil || ctx.Err() != nil {
			delete(ends, key)
			break
		}
	}
	return ends
}

func (v *several) poise() {}

func (v *several) replace() {}

func (v *several) end() {
	await(v.t, "requests for several keys run again", func() bool { return v.last.Load().After(v.healed) })
	close(v.stop)
	v.callers.Wait()
	v.figures.note("%d runs with %d keys, %s", v.served.Load(), len(v.keys), &v.codes)
}
