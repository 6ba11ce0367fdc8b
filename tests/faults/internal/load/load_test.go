package load

import (
	"fmt"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// down is how long Redis is dead: longer than a command waits for it, so that who
// may not wait is refused, and much shorter than a lease lives without it.
const down = time.Second

// outage kills Redis under those who are in flight, and brings it back.
func outage(t *testing.T, c *crowd, b *bank, server *redistest.Server, watch *census) {
	t.Helper()
	inFlight, asleep := b.inFlight.Load(), b.sleeping.Load()
	if inFlight == 0 {
		t.Error("Redis is killed when nobody is in flight any more")
	}
	t.Logf("after %v, with %d in flight and %d asleep inside, Redis is killed",
		time.Since(c.opened).Round(time.Millisecond), inFlight, asleep)
	server.Kill()
	over := time.After(down)
	c.knock(t, watch.browser, watch.services)
	<-over
	server.RestartFromDisk()
}

// Redis is killed twice under thousands of requests. Each gets an answer that is
// true, no count is lost, and nothing is left.
//
//faults:row 42: under thousands of requests at once
func TestRedisIsKilledUnderACrowd(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		keeps bool // what it has confirmed
	}{
		"and keeps what it confirmed": {[]string{"--appendonly", "yes"}, true},
		"and loses everything":        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := size(t)
			allowFiles(t, uint64(2*n+1000))
			server, b := redistest.Start(t, test.args...), newBank(!test.keeps)
			watch := &census{admin: server.Client(t), browser: newBrowser(t, n)}
			alone := watch.take(t)
			for i := range 2 {
				watch.services = append(watch.services, startService(t, b, server, i))
			}
			before := watch.take(t)

			c := newCrowd(n, watch.services)
			c.send(watch.browser)
			await(t, "all requests to arrive", func() string {
				if now := b.inFlight.Load(); now < int64(n) {
					return fmt.Sprintf("%d of %d are in flight", now, n)
				}
				return ""
			})
			amid := watch.take(t)
			c.opened = time.Now()
			b.open()
			c.awaitAnswers(t, n/10)
			await(t, "all who sleep", func() string {
				if slept, all := b.slept.Load(), n/perAccount/sleepers; int(slept) < all {
					return fmt.Sprintf("%d of %d have begun", slept, all)
				}
				return ""
			})
			outage(t, c, b, server, watch)
			b.wake()
			c.awaitAnswers(t, n/10)
			outage(t, c, b, server, watch)
			c.done.Wait()
			t.Logf("%d requests, %d in flight at once: %s", n, b.most.Load(), c.table())

			defer judge(t, c, b, test.keeps) // when all has been told
			watch.browser.CloseIdleConnections()
			idle := before
			idle.redisConns = alone.redisConns + watch.pools()
			await(t, "services that have nothing to do", func() string { return watch.take(t).more(idle) })
			var kept map[string]int
			await(t, "keys that must go", func() string {
				left, stay := watch.left(t)
				kept = stay
				if len(left) == 0 {
					return ""
				}
				return fmt.Sprintf("%d, as %q", len(left), left[0])
			})
			after := watch.take(t)
			for _, s := range watch.services {
				s.close(t)
			}
			await(t, "nothing left of the services", func() string { return watch.take(t).more(alone) })
			t.Logf("without services: %v\nbefore: %v\namid: %v\nafter: %v, %v\nat the end: %v", alone, before, amid, after, kept, watch.take(t))
		})
	}
}

// judge says what is wrong with the answers and the counts.
func judge(t *testing.T, c *crowd, b *bank, keeps bool) {
	t.Helper()
	if int(b.most.Load()) != len(c.requests) {
		t.Errorf("%d of %d requests were in flight at once", b.most.Load(), len(c.requests))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	told := &story{of: c.byName, opened: c.opened, ran: b.runs, cut: b.cut}
	heard, faults := map[string]int{}, 0
	for i := range c.answers {
		a := &c.answers[i]
		if a.code == "" && !a.replayed {
			heard[a.request.name]++
		}
		if fault := a.fault(told); fault != "" {
			if faults++; faults <= 10 {
				t.Errorf("%s: %s: %s %q", a.request.url, fault, a.kind(), a.body)
			}
		}
	}
	once := map[string]int{}
	for name, ran := range b.runs {
		if ran != 1 || heard[name] != 1 {
			t.Errorf("%s ran %d times, and its client heard of %d", name, ran, heard[name])
		}
		if key := c.byName[name].once; key != "" {
			once[key]++
		}
	}
	twice := 0
	for _, runs := range once {
		if runs > 1 {
			twice++
		}
	}
	if twice > 0 && keeps {
		t.Errorf("%d idempotent requests ran twice", twice)
	}
	var all, undisturbed total
	for name, a := range b.accounts {
		all.add(a)
		if !b.lost[name] { // a machine may be slow enough to lose a lease
			undisturbed.add(a)
		}
	}
	if all.fencedLost != 0 {
		t.Errorf("%d counts are lost of those that look at fencing numbers", all.fencedLost)
	}
	if u := undisturbed; keeps && (u.lost != 0 || u.meetings != 0 || u.refused != 0) {
		t.Errorf("%d counts are lost, %d meetings, %d late fences", u.lost, u.meetings, u.refused)
	}
	if !keeps && all.meetings == 0 {
		t.Error("nobody met another, although all locks were lost: the counts show nothing")
	}
	t.Logf("counts: %+v, %d idempotent requests ran twice, %d leases lost, and %d waits ended with one", all, twice, len(b.lost), len(b.cut))
}
