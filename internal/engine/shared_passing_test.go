package engine

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A writer of the process ends the passes of shared leases to readers that came later, and a
// reader that came before it is served before it.
func TestWaitingWriterEndsPassesOfSharedLeases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], sharing(1, 0))
		passesUnlimited(h)
		var order []string
		wait := func(name string, limit store.Limit) {
			waiting(t, p.engines[0], sharing(limit, WaitForever), func(*Hold) { order = append(order, name) })
		}
		wait("before", 1)
		wait("writer", store.Exclusive)
		wait("after", 1)
		wait("after", 1)
		release(t, h)
		sleep(5 * time.Second)
		if want := []string{"before", "writer", "after", "after"}; !slices.Equal(order, want) {
			t.Errorf("served in the order %v, want %v", order, want)
		}
		p.checkIdle(t)
	})
}

// Readers that come back without end do not keep a writer of another process waiting.
func TestWriterOfAnotherProcessIsNotStarvedByReaders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		var over atomic.Bool
		for range 5 {
			go func() {
				for !over.Load() {
					h := hold(t, p.engines[0], sharing(store.Unlimited, WaitForever))
					time.Sleep(10 * time.Millisecond)
					release(t, h)
				}
			}()
			time.Sleep(time.Millisecond)
		}
		begun := time.Now()
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) { over.Store(true) })
		sleep(time.Second)
		if !over.Load() {
			t.Fatalf("the writer waits for %v", time.Since(begun))
		}
		p.checkIdle(t)
	})
}

// Shared leases that pass without limit go back to the store once others wait, also those
// that no hint has named.
func TestHintOfOneSharedLeaseEndsPassesOfAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		holds := holdAll(t, p.engines[0], sharing(2, 0), 2)
		for _, h := range holds {
			passesUnlimited(h)
		}
		time.Sleep(time.Second)
		p.stores[0].hint("k", holds[0].Token()) // others wait
		time.Sleep(time.Second)
		for range 2 * maxPasses {
			waiting(t, p.engines[0], sharing(2, WaitForever), func(*Hold) { time.Sleep(10 * time.Millisecond) })
		}
		release(t, holds[1])
		time.Sleep(100 * time.Millisecond)
		if got := counts(p.stores[0])["release"]; got == 0 {
			t.Error("the lease that was not named still passes")
		}
		release(t, holds[0])
		time.Sleep(10 * time.Second)
		p.checkIdle(t)
	})
}

// A reader that is refused beside readers of its process shows that others wait. So passes
// end in time, also if no hint arrives.
func TestRefusedReaderEndsPassesOfItsProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], sharing(store.Unlimited, 0))
		passesUnlimited(h)
		p.stores[0].hint = func(string, string) {}
		var written time.Time
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) { written = time.Now() })
		for range 300 {
			waiting(t, p.engines[0], sharing(store.Unlimited, WaitForever), func(*Hold) { time.Sleep(10 * time.Millisecond) })
		}
		begun := time.Now()
		release(t, h)
		sleep(20 * time.Second)
		if took := written.Sub(begun); written.IsZero() || took > maxPassTime+20*time.Millisecond {
			t.Errorf("the writer was served after %v", took)
		}
		p.checkIdle(t)
	})
}

// A reader of the process is not starved by writers of the process that pass a lease, though
// no other process waits.
func TestReaderIsNotStarvedByPassesOfWriters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], request(0))
		passesUnlimited(h)
		hint := p.stores[0].hint
		p.stores[0].hint = func(key, token string) {
			if limitOf(token).IsShared() { // the writers learn of the reader from their own process
				hint(key, token)
			}
		}
		written, before := 0, -1
		for range 900 {
			waiting(t, p.engines[0], request(WaitForever), func(*Hold) {
				time.Sleep(time.Millisecond)
				written++
			})
		}
		waiting(t, p.engines[0], sharing(store.Unlimited, WaitForever), func(*Hold) { before = written })
		release(t, h)
		sleep(20 * time.Second)
		if before < 0 || before > maxPasses+1 || written != 900 {
			t.Errorf("the reader was served after %d of %d writers", before, written)
		}
		p.checkIdle(t)
	})
}

// In an outage the store can serve no writer, so leases pass on.
func TestSharedLeasesPassInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		long := sharing(2, 0)
		long.TTL = time.Minute
		holds := holdAll(t, p.engines[0], long, 2)
		var served atomic.Int64
		wait := func(limit store.Limit) {
			go func() {
				h := hold(t, p.engines[0], sharing(limit, WaitForever))
				served.Add(1)
				_, _ = h.Release(t.Context()) // fails in the outage
			}()
			synctest.Wait()
		}
		wait(store.Exclusive)
		wait(2)
		p.stores[0].setDown(true)
		time.Sleep(failFast)
		wait(2) // needs no command
		refuses(t, p.engines[0], sharing(2, 0), Busy)
		for _, r := range []Request{sharing(3, WaitForever), sharing(store.Unlimited, WaitForever)} {
			refuses(t, p.engines[0], r, Unavailable)
		}
		_, _ = holds[0].Release(t.Context())
		synctest.Wait()
		if n := served.Load(); n != 2 {
			t.Errorf("%d are served in the outage, want 2", n)
		}
		p.stores[0].setDown(false)
		_, _ = holds[1].Release(t.Context())
		sleep(time.Minute)
		if n := served.Load(); n != 3 {
			t.Errorf("%d served", n)
		}
		p.checkIdle(t)
	})
}

// A writer that dies while it is the first in the line delays readers for as long as the page
// of readers and writers says.
func TestDeadWriterDelaysReaders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(3)
		for _, e := range p.engines {
			e.bound = 500 * time.Millisecond // the default of WithCommandTimeout
		}
		held := hold(t, p.engines[0], sharing(store.Unlimited, 0))
		waiting(t, p.engines[1], request(WaitForever), func(*Hold) {})
		p.stores[1].before.set(func(string, storetest.AnyRequest) error { return &store.Fault{Temporary: true, Err: errLateGrant} })
		begun := time.Now()
		reader := hold(t, p.engines[2], sharing(store.Unlimited, WaitForever))
		const page = 3500 * time.Millisecond
		// The reader asks again at the end of that time, or up to a quarter of a second later.
		if took := time.Since(begun); took < page || took > page+recheckInterval/4 {
			t.Errorf("the reader waited for %v", took)
		}
		text, err := os.ReadFile("../../docs/shared-locks.md")
		if said := "up to " + strconv.FormatFloat(page.Seconds(), 'f', -1, 64) + " s"; err != nil || !strings.Contains(string(text), said) {
			t.Errorf("the page does not say %q, %v", said, err)
		}
		p.stores[1].before.set(nil)
		release(t, reader)
		release(t, held)
		time.Sleep(5 * time.Second)
		p.checkIdle(t)
	})
}
