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
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/clock"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// multiKey is the part of callers that lock several keys at once, of all masters. Other
// callers lock only one of these keys.
type multiKey struct {
	*scenario
	keys     []string
	callers  sync.WaitGroup
	stop     chan struct{}
	served   atomic.Int64
	last     atomic.Int64 // when the last of them was served
	refusals counter
}

func (m *multiKey) start() {
	m.stop = make(chan struct{})
	for _, master := range m.masters() {
		m.keys = append(m.keys, m.keysAt(master, m.name+"-multikey", 1)...)
	}
	if len(m.keys) == 1 {
		m.keys = m.keysAt(m.master, m.name+"-multikey", 2)
	}
	m.group.Go(func() { // also if the scenario is aborted
		<-m.ctx.Done()
		m.callers.Wait()
	})
	for n := range 2 {
		p, keys := m.newProcess(n, core.WithWait(requestWait), core.WithTTL(shortTTL)), slices.Clone(m.keys)
		if n > 0 {
			slices.Reverse(keys)
		}
		m.callers.Go(func() { m.callRepeatedly(p, fmt.Sprintf("process %d for all keys", n), keys) })
		m.callers.Go(func() { m.callRepeatedly(p, fmt.Sprintf("process %d for one key", n), keys[:1]) })
	}
	suite.Eventually(m.t, "calls for several keys run", func() bool { return m.served.Load() > 10 })
}

// callRepeatedly calls until the end of the part.
func (m *multiKey) callRepeatedly(p *process, holder string, keys []string) {
	for m.ctx.Err() == nil {
		select {
		case <-m.stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
		m.call(p, holder, keys)
	}
}

// call makes one call, which runs with all keys or is refused.
func (m *multiKey) call(p *process, holder string, keys []string) {
	runs, isInformed := 0, false
	var granted int64
	callCtx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := p.locks.DoAll(callCtx, keys, func(ctx context.Context) error {
		runs++
		granted = clock.Now()
		var held []*history.Lease
		for _, lease := range core.LeasesFromContext(ctx) {
			// If data may be lost, a short run may end before its holder is informed.
			if m.failure.loss == nothing {
				held = append(held, m.history.Granted(history.Op{Name: holder, Unfenced: true}, lease))
			}
		}
		time.Sleep(m.ledger.runTime)
		for _, lease := range held {
			lease.End()
		}
		isInformed = slices.ContainsFunc(core.LeasesFromContext(ctx), func(l *core.Lease) bool { return l.Context().Err() != nil })
		return nil
	})
	isLost := errors.Is(err, core.ErrLost)
	switch {
	case runs > 1, runs == 0 && err == nil, runs == 1 && err != nil && !isLost, isInformed && err == nil:
		m.t.Errorf("%s: %d runs, informed of a loss %v, and %v", holder, runs, isInformed, err)
	case runs == 0:
		if isLost || callCtx.Err() != nil || !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrWaitTimeout) {
			m.t.Errorf("%s: an undocumented outcome: %v", holder, err)
		}
		m.refusals.add(fmt.Sprintf("of %d keys refused", len(keys)))
		return
	}
	if len(keys) > 1 && err == nil {
		m.served.Add(1)
		m.last.Store(granted)
	}
}

func (m *multiKey) finish() {
	suite.Eventually(m.t, "calls for several keys run again", func() bool { return m.last.Load() > m.healthyAt })
	close(m.stop)
	m.callers.Wait()
	m.note("%d runs with %d keys, %s", m.served.Load(), len(m.keys), &m.refusals)
}
