package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// search starts the search of a process.
func (p *processes) search(i int) {
	p.engines[i].StartSearch(p.stores[i], Search{Every: time.Minute, TTL: 10 * time.Second, Mark: "k"})
}

// died sets the record of a request whose attempt has died.
func (p *processes) died(key string) {
	p.server.setRecord(key, fakeRecord{state: 'R', token: "dead:" + key, fingerprint: []byte("f"), number: 1, reference: "trace of " + key})
}

// searches returns what the searches of a process have counted.
func (r *recorder) searches() (counts []int) {
	for _, event := range r.of(Searched) {
		counts = append(counts, event.Holds)
	}
	return counts
}

// One process searches. If Redis does not answer it, another process takes over. The first one says
// that it counts no longer once it learns of the other.
func TestAnotherProcessTakesOverTheSearch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		for i := range 3 * searchWidth {
			p.died(fmt.Sprint("k", i))
		}
		p.died("other") // no key of an attempt
		for i := range p.engines {
			p.search(i)
			sleep(time.Second)
		}
		sleep(2 * time.Minute)
		p.stores[0].before.set(fails(errDown, "renew", "take", "enqueue", "release", "search"))
		sleep(3 * time.Minute)
		if got := fmt.Sprint(p.events[0].searches(), p.events[1].searches()); got != "[48 48 48] [48 48 48]" {
			t.Errorf("searched: %s", got)
		}
		for i, want := range [][2]int{{48, 1}, {0, 0}} {
			unknown, warned := p.events[i].of(OutcomeUnknown), p.events[i].of(Warned)
			if len(unknown) != want[0] || len(warned) != want[1] {
				t.Errorf("process %d: %d reports, warned %+v", i, len(unknown), warned)
			}
			for _, event := range unknown {
				var found *Found
				if !errors.As(event.Err, &found) || *found != (Found{"dead:" + event.Key, 1, time.Minute}) || !event.Attempt || event.Origin != "trace of "+event.Key {
					t.Errorf("%+v", event)
				}
			}
		}
		p.stores[0].before.set(nil)
		sleep(2 * time.Minute)
		if got := p.events[0].searches(); len(got) != 4 || got[3] != 0 {
			t.Errorf("then searched: %v", got)
		}
		for i := range p.engines {
			closes(t, p.engines[i])
		}
		if got := p.events[1].searches(); got[len(got)-1] != 0 || len(p.events[1].of(Closing)) != 0 || p.server.value(searchKey) != "" {
			t.Errorf("after Close: %v, the key holds %q", got, p.server.value(searchKey))
		}
	})
}

// A process that is started again after it was killed searches once its own old lease has ended, and
// does not pause for as long as between two searches.
func TestSearchBeginsAfterTheLeaseOfADeadProcess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		p.died("k")
		p.server.set(searchKey, "dead", 10*time.Second)
		p.search(0)
		sleep(21 * time.Second)
		if reports, counts := p.events[0].of(OutcomeUnknown), p.events[0].searches(); len(reports) != 1 || len(counts) != 1 {
			t.Errorf("%d reports, searched %v", len(reports), counts)
		}
		closes(t, p.engines[0])
	})
}

// A process that cannot search leaves that to another one.
func TestProcessThatCannotSearchLeavesIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		p.died("k")
		p.stores[0].before.set(fails(errDown, "search"))
		for i := range p.engines {
			p.search(i)
			sleep(time.Second)
		}
		sleep(time.Hour)
		for i, want := range [][2]int{{0, 1}, {1, 0}} {
			if n, warned := len(p.events[i].of(OutcomeUnknown)), len(p.events[i].of(Warned)); n != want[0] || warned != want[1] {
				t.Errorf("process %d: %d reports, %d warnings", i, n, warned)
			}
			closes(t, p.engines[i])
		}
	})
}

// An unknown outcome is reported again only if the record could not note the report.
func TestSearchReportsUntilTheRecordNotesIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arrange func(t *testing.T, p *processes, b *blocker)
		reports int // after three searches
	}{
		"noted":     {func(*testing.T, *processes, *blocker) {}, 1},
		"not noted": {func(_ *testing.T, p *processes, _ *blocker) { p.stores[0].before.set(fails(errDown, "resolve")) }, 3},
		"noted by a copy": {func(t *testing.T, p *processes, _ *blocker) {
			t.Helper()
			_ = refused(t, p.engines[1], attempt("f", 0))
		}, 0},
		"noted by its own process": {func(t *testing.T, p *processes, _ *blocker) {
			t.Helper()
			p.server.setRecord("k", fakeRecord{})
			end(t, hold(t, p.engines[1], attempt("f", 0)), EndUnknown)
		}, 0},
		"the observer blocks": {func(_ *testing.T, _ *processes, b *blocker) {
			held := make(chan struct{})
			b.held = held
			time.AfterFunc(150*time.Second, func() { close(held) })
		}, 1},
		"the observer blocks, and there is no room": {func(_ *testing.T, p *processes, b *blocker) {
			held := make(chan struct{})
			b.held = held
			for range eventRoom + 1 {
				p.engines[0].observeLater(queuedEvent{Event: Event{Kind: OutcomeUnknown, Key: "x"}})
			}
			time.AfterFunc(90*time.Second, func() { close(held) })
		}, 1},
		"its attempt runs without its lease": {func(t *testing.T, p *processes, _ *blocker) {
			t.Helper()
			p.server.setRecord("k", fakeRecord{})
			h := hold(t, p.engines[0], attempt("f", 0))
			p.server.set("k", "", 0)
			<-h.Context().Done()
		}, 0},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			b := &blocker{}
			p.engines[0].hooks.Observe = b.observe
			p.died("k")
			test.arrange(t, p, b)
			sleep(time.Second)
			p.search(0)
			sleep(150 * time.Second)
			reports := 0
			for _, event := range b.of(OutcomeUnknown) {
				if event.Key == "k" {
					reports++
				}
			}
			if reports != test.reports {
				t.Errorf("%d reports, want %d", reports, test.reports)
			}
			for _, e := range p.engines {
				_ = e.Close(canceledContext())
			}
		})
	}
}

// Close ends a search that waits for the server.
func TestCloseEndsASearch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		p.died("k")
		p.stores[0].before.set(delays(time.Minute, "outcome"))
		p.search(0)
		sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.engines[0].Close(ctx); err == nil || p.server.value(searchKey) != "" {
			t.Errorf("Close: %v, the key holds %q", err, p.server.value(searchKey))
		}
		sleep(time.Minute)
	})
}
