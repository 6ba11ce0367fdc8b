package failovertest

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
	ran := 0
	one := hold{by: by}
	err := p.locks.DoAll(context.Background(), keys, func(ctx context.Context) error {
		ran++
		one.granted = time.Now()
		time.Sleep(v.ledger.takes)
		one.ended, one.told = time.Now(), ctx.Err() != nil
		if lease, ok := core.FromContext(ctx); ok && lease.ValidUntil().Before(one.ended) {
			one.ended = lease.ValidUntil() // not told yet
		}
		return nil
	})
	isLost := errors.Is(err, core.ErrLost)
	switch {
	case ran > 1, ran == 0 && err == nil, ran == 1 && err != nil && !isLost:
		v.t.Errorf("%s: %d runs, and %v", by, ran, err)
	case ran == 0:
		if isLost || !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrWaitTimeout) {
			v.t.Errorf("%s: no row of the table: %v", by, err)
		}
		v.codes.add(fmt.Sprintf("of %d keys refused", len(keys)))
		return
	}
	if len(keys) > 1 && err == nil {
		v.served.Add(1)
		v.last.Store(&one.granted)
	}
	// Where data is lost, or may be, one that runs for a moment is not told.
	if v.failure.loss == nothing && !one.told {
		for _, key := range keys {
			one.key = key
			v.history.add(one)
		}
	}
}

func (v *several) poise() {}

func (v *several) replace() {}

func (v *several) end() {
	await(v.t, "requests for several keys run again", func() bool { return v.last.Load().After(v.healed) })
	close(v.stop)
	v.callers.Wait()
	v.figures.note("%d runs with %d keys, %s", v.served.Load(), len(v.keys), &v.codes)
}
