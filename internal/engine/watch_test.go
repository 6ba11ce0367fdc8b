package engine

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// mostLate is how late a waiter may be that checks its key once a recheckInterval.
const mostLate = recheckInterval + recheckInterval/4

// A waiter behind a lease that lasts asks seldom, and its key is compared meanwhile. In other cases a
// waiter asks about once a second, and nothing is compared.
func TestWaiterBehindSteadyLeaseAsksSeldom(t *testing.T) {
	t.Parallel()
	foreign := func(value string) func(p *processes) {
		return func(p *processes) { // as a waiter that is not the first
			p.server.queues["k"] = []string{"other:1"}
			p.server.set("k", value, time.Hour)
		}
	}
	for _, test := range []struct {
		name    string
		before  func(p *processes)
		of      func(r *Request)
		watched bool
	}{
		{"a lease", nil, nil, true},
		{"a foreign holder", foreign("foreign"), nil, false},
		{"a foreign holder with a colon", foreign("foreign:1"), nil, false},
		{"an unknown token of this process", foreign("p1:999"), nil, false},
		{"a shared lease", nil, func(r *Request) { r.Limit = store.Unlimited }, false},
		{"a marker", foreign(marker), nil, false},
		{"an attempt", nil, func(r *Request) { r.Attempt = attempt("a", 0).Attempt }, false},
		{"not listening", func(p *processes) { p.stores[1].connecting = time.Hour }, nil, false},
	} {
		row(t, test.name, func(t *testing.T) {
			p := newProcesses(2)
			h := hold(t, p.engines[0], request(0))
			if test.before != nil {
				test.before(p)
			}
			r := request(WaitForever)
			if test.of != nil {
				test.of(&r)
			}
			leave := leaving(t, p.engines[1], r)
			sleep(4 * recheckInterval)
			before := len(p.stores[1].transitions())
			sleep(time.Minute)
			asked := len(p.stores[1].transitions()) - before
			comparisons := p.stores[1].comparisons()
			switch {
			case test.watched && (asked > 10 || asked+len(comparisons) < int(time.Minute/mostLate)):
				t.Errorf("asked %d times, and compared %d times", asked, len(comparisons))
			case !test.watched && (asked < int(time.Minute/mostLate) || len(comparisons) > 0):
				t.Errorf("asked %d times, and compared %d times", asked, len(comparisons))
			}
			left := time.Now()
			leave()
			_, _ = h.Release(t.Context())
			closes(t, p.engines[1])
			if late := time.Since(left); late != 0 {
				t.Errorf("closed %v late", late)
			}
		})
	}
}

// The queues of a shard whose pauses end one after the other ask together.
func TestWatchedQueuesAskTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		defer sleep(time.Second) // until all have ended
		r := longer(WaitForever)
		const keys = 40
		for i := range keys {
			for r.Key = fmt.Sprint(i); p.engines[1].shardOf(r.Key) != p.engines[1].shardOf("0"); {
				r.Key += "x"
			}
			h := hold(t, p.engines[0], r)
			waiting(t, p.engines[1], r, func(*Hold) {})
			defer release(t, h)
			sleep(25 * time.Millisecond)
		}
		sleep(2 * watchedPause)
		before := len(p.stores[1].times("enqueue"))
		sleep(watchedPause + watchedPause/4)
		asked := p.stores[1].times("enqueue")[before:]
		together := make(map[time.Time]int)
		for _, at := range asked {
			together[at]++
		}
		if len(asked) < keys || len(together) > int((watchedPause+watchedPause/4)/recheckInterval)+1 {
			t.Errorf("%d requests at %d times", len(asked), len(together))
		}
	})
}

// The queue is watched after the second answer in a row that names the same lease.
func TestSteadyAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		leave := leaving(t, p.engines[1], request(WaitForever))
		q := p.engines[1].shardOf("k").queues["k"]
		held := store.Answer{Holder: "pX:1", Remaining: time.Minute}
		for name, test := range map[string]struct {
			change func(*store.Answer)
			err    error
			want   bool
		}{
			"the same":         {func(*store.Answer) {}, nil, true},
			"another lease":    {func(a *store.Answer) { a.Holder = "pX:2" }, nil, false},
			"a foreign holder": {func(a *store.Answer) { a.ForeignHolder = true }, nil, false},
			"shared leases":    {func(a *store.Answer) { a.Shared = true }, nil, false},
			"a late grant":     {func(a *store.Answer) { a.Granted = true }, nil, false},
			"expires soon":     {func(a *store.Answer) { a.Remaining = recheckInterval }, nil, false},
			"never expires":    {func(a *store.Answer) { a.Remaining = -1 }, nil, false},
			"a fault":          {func(*store.Answer) {}, errDown, false},
			"a holder unknown": {func(a *store.Answer) { a.Holder, a.HolderUnknown = "", true }, nil, false},
		} {
			q.watchedHolder = ""
			answer := held
			test.change(&answer)
			if q.isSteady(held, nil) {
				t.Errorf("%s: watched after one answer", name)
			}
			if got := q.isSteady(answer, test.err); got != test.want {
				t.Errorf("%s: %t", name, got)
			}
		}
		leave()
		release(t, h)
	})
}

// The queues of a shard have one command for many keys.
func TestKeysOfWatchedQueuesAreComparedTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		defer sleep(time.Second) // until all have ended
		r, number := request(WaitForever), 0
		first := p.engines[1].shardOf("0")
		for i := 0; number <= maxCompared; i++ {
			if r.Key = fmt.Sprint(i); p.engines[1].shardOf(r.Key) != first {
				continue
			}
			number++
			h := hold(t, p.engines[0], r)
			waiting(t, p.engines[1], r, func(*Hold) {})
			defer release(t, h)
		}
		sleep(4 * recheckInterval)
		if got := p.stores[1].comparisons(); len(got) < 4 || slices.Max(got) != maxCompared || !slices.Contains(got, number-maxCompared) {
			t.Errorf("the comparisons had %v keys", got)
		}
	})
}

// A watched waiter asks at the moment when the key of a dead holder expires.
func TestWatchedWaiterAsksWhenItsKeyExpires(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		const keys = 20
		expiry := time.Now().Add(8 * time.Second)
		served := make(chan time.Time, keys)
		for i := range keys {
			r := request(WaitForever)
			r.Key = fmt.Sprint(i)
			p.server.set(r.Key, "pX:1", time.Until(expiry))
			waiting(t, p.engines[0], r, func(*Hold) { served <- time.Now() })
		}
		for range keys {
			if late := (<-served).Sub(expiry); late < 0 || late > recheckInterval/4 {
				t.Errorf("served %v after the key has expired", late)
			}
		}
		if len(p.stores[0].comparisons()) == 0 {
			t.Error("was not watched")
		}
	})
}

// A watched waiter takes its place again if the store's queue was lost, although the key has the same
// value.
func TestWatchedWaiterTakesItsPlaceAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], longer(0))
		waiting(t, p.engines[1], longer(WaitForever), func(*Hold) {})
		sleep(4 * recheckInterval)
		p.server.locked(func() { delete(p.server.queues, "k") })
		sleep(watchedPause + watchedPause/4)
		if got := p.server.queue("k"); len(got) != 1 {
			t.Errorf("the queue has %v", got)
		}
		release(t, h)
		sleep(time.Second)
		p.checkIdle(t)
	})
}

// A watched waiter asks if its key could not be compared. If the server refuses that, the waiters ask
// once a recheckInterval for a refusedPause.
func TestWaiterAsksIfItsKeyIsNotCompared(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault *store.Fault
		ends  bool
	}{
		"a temporary fault": {errDown, false},
		"a refusal":         {&store.Fault{Err: errors.New("CROSSSLOT")}, true},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			h := hold(t, p.engines[0], request(0))
			s := p.stores[1]
			waiting(t, p.engines[1], request(WaitForever), func(*Hold) {})
			s.before.set(func(transition string, _ storetest.AnyRequest) error {
				if transition == "compare" && len(s.comparisons()) == 1 {
					return test.fault
				}
				return nil
			})
			for len(s.comparisons()) == 0 {
				sleep(10 * time.Millisecond)
			}
			asked := s.times("enqueue")
			if late := time.Since(asked[len(asked)-1]); late > 10*time.Millisecond {
				t.Errorf("asked %v before the fault", late)
			}
			sleep(refusedPause)
			if ends := len(s.comparisons()) == 1; ends != test.ends {
				t.Errorf("%d comparisons", len(s.comparisons()))
			}
			if n := len(s.times("enqueue")) - len(asked); test.ends == (n < int(time.Minute/mostLate)) {
				t.Errorf("asked %d times", n)
			}
			if sleep(3 * mostLate); len(s.comparisons()) == 1 {
				t.Error("the key is never compared again")
			}
			release(t, h)
			sleep(time.Second)
			p.checkIdle(t)
		})
	}
}

// Redis stops replying. A watched waiter whose wait ends then is refused because of Redis as early as
// one that asks once a recheckInterval.
func TestWatchedWaiterNoticesAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		const keys, steady = 40, 4*recheckInterval + recheckInterval/2
		r := request(steady + mostLate + bound)
		begun := time.Now()
		refused := make([]<-chan error, keys)
		for i := range keys {
			r.Key = fmt.Sprint(i)
			p.server.set(r.Key, "pX:1", time.Hour)
			refused[i] = acquiring(t, p.engines[1], r)
		}
		sleep(time.Until(begun.Add(steady)))
		p.stores[1].before.set(func(string, storetest.AnyRequest) error {
			time.Sleep(bound - time.Millisecond)
			return errNoCommitReply
		})
		for _, refused := range refused {
			if err := <-refused; reasonOf(t, err) != Unavailable {
				t.Errorf("refused with %v, want %v", reasonOf(t, err), Unavailable)
			}
		}
		if len(p.stores[1].comparisons()) == 0 {
			t.Error("was not watched")
		}
		p.stores[1].before.set(nil)
		sleep(time.Minute)
	})
}

// A watched waiter leaves, and the next one has an attempt that the record refuses.
func TestAttemptBehindWatchedWaiterIsDecided(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], request(0))
		p.server.setRecord("k", fakeRecord{state: 'U', token: "pX:1", fingerprint: []byte("a")})
		leave := leaving(t, p.engines[1], request(WaitForever))
		refused := acquiring(t, p.engines[1], attempt("a", WaitForever))
		sleep(4 * recheckInterval)
		if len(p.stores[1].comparisons()) == 0 {
			t.Error("was not watched")
		}
		left := time.Now()
		leave()
		if err := <-refused; reasonOf(t, err) != Unreplayable || time.Since(left) > mostLate {
			t.Errorf("refused with %v after %v", reasonOf(t, err), time.Since(left))
		}
		release(t, h)
		sleep(time.Second)
		p.checkIdle(t)
	})
}

// A queue that is not needed any more is not watched, and Close does not wait for the time of the next
// comparison.
func TestIdleShardComparesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(p *processes, leave func()){
		"the waiter leaves while its request is in flight": func(p *processes, leave func()) {
			p.stores[0].after.set(delays(time.Second, "enqueue"))
			sleep(3 * recheckInterval / 2)
			leave()
			sleep(time.Second)
		},
		"the key expires after all queues have asked together": func(_ *processes, leave func()) {
			sleep(4 * recheckInterval)
			leave()
		},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(1)
			p.server.set("k", "pX:1", 3*time.Second)
			end(p, leaving(t, p.engines[0], request(WaitForever)))
			s := p.engines[0].shardOf("k")
			if n := len(s.watching.queues); n != 0 || s.watching.timer != nil {
				t.Errorf("%d queues are watched, timer %v", n, s.watching.timer)
			}
			if s.watching.timer != nil {
				s.watching.timer.Stop()
			}
		})
	}
}
