package waiting

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

func turn(t *testing.T, r *history.Recorder, locks *core.Locker, one history.Op, section time.Duration) {
	one.Key = theKey
	lease, err := r.Lock(t.Context(), locks, one)
	if err != nil {
		t.Errorf("%+v: %v", one, err)
		return
	}
	if section > 0 {
		<-time.After(section)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("%+v: %v", one, err)
	}
}

func TestFirstComeIsFirstServed(t *testing.T) {
	t.Parallel()
	const processes, goroutines = 4, 16
	for _, test := range []struct {
		name      string
		processOf func(i int) int
	}{
		{"processes alternate", func(i int) int { return i % processes }},
		{"one process after the other", func(i int) int { return i / goroutines }},
		{"in reverse", func(i int) int { return processes - 1 - i/goroutines }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			admin := server.Client(t)
			var waiting atomic.Int64
			var all []*core.Locker
			for range processes {
				all = append(all, newLocker(t, server.Client(t), core.WithFencing(true), countWaiters(&waiting)))
			}
			outer := lock(t, newLocker(t, server.Client(t), core.WithFencing(true)))
			r := history.NewRecorder()
			var group sync.WaitGroup
			var arrived []int // processes, in the order of their first callers
			for i := range processes * goroutines {
				p := test.processOf(i)
				if !slices.Contains(arrived, p) {
					arrived = append(arrived, p)
				}
				group.Go(func() { turn(t, r, all[p], history.Op{Process: p, Client: i}, 0) })
				suite.Eventually(t, "caller "+strconv.Itoa(i)+" waits", func() bool {
					return waiting.Load() == int64(i+1) && queueLength(t, admin) == len(arrived)
				})
			}
			release(t, outer)
			group.Wait()

			h := r.History()
			holds := h.Holds()
			history.Report(t, h, map[string][]string{
				"order": holds.Overtakings(0), "exclusion": holds.Exclusion(), "fences": holds.Fences(), "service": holds.Service(now()),
			})
			var served []int
			for _, one := range holds.Granted()[theKey] {
				if !slices.Contains(served, one.Process) {
					served = append(served, one.Process)
				}
			}
			if !slices.Equal(served, arrived) {
				t.Errorf("the processes arrived in the order %v and were served in the order %v", arrived, served)
			}
			t.Logf("processes served in the order %v, with %d hand-offs between them", served, holds.HandOffs())
		})
	}
}

// Sections of 5 ms: a turn of a process ends by its time, after 10 sections.
func TestSlowHoldersTakeTurnsByTime(t *testing.T) {
	const processes, goroutines, section = 2, 8, 5 * time.Millisecond
	server := redistest.Start(t)
	r := history.NewRecorder()
	var group sync.WaitGroup
	for p := range processes {
		locks := newLocker(t, server.Client(t), core.WithFencing(true))
		for g := range goroutines {
			group.Go(func() {
				for range suite.Size(5, 20) {
					turn(t, r, locks, history.Op{Process: p, Client: g}, section)
				}
			})
		}
	}
	group.Wait()
	h := r.History()
	holds := h.Holds()
	history.Report(t, h, map[string][]string{
		"fairness": history.BusyMachine().Monopolies(holds), "exclusion": holds.Exclusion(), "fences": holds.Fences(), "service": holds.Service(now()),
	})
	_, longest := holds.Waits()
	t.Logf("%d grants, %d hand-offs between processes, longest wait %v", len(holds), holds.HandOffs(), longest.Round(time.Millisecond))
}
