package load

import (
	"fmt"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// outageTime is how long Redis is dead: longer than the command timeout, so that requests
// with a short wait are refused, and much shorter than a TTL.
const outageTime = time.Second

// outage kills Redis while requests are in flight, and restarts it.
func outage(t *testing.T, c *requests, b *service, server *redistest.Server, watch *leakCheck) {
	t.Helper()
	inFlight, asleep := b.inFlight.Load(), b.sleeping.Load()
	if inFlight == 0 {
		t.Error("Redis is killed when no request is in flight")
	}
	t.Logf("after %v, with %d in flight and %d handlers asleep, Redis is killed",
		time.Since(c.gateOpened).Round(time.Millisecond), inFlight, asleep)
	server.Kill()
	over := time.After(outageTime)
	c.sendDuringOutage(t, watch.client, watch.instances)
	<-over
	server.RestartFromDisk()
}

// Redis is killed twice while thousands of requests are in flight. Each request gets a true
// answer, no count is lost, and nothing is left.
func TestRedisIsKilledUnderLoad(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		keeps bool // Redis keeps all confirmed data
	}{
		"and keeps what it confirmed": {[]string{"--appendonly", "yes"}, true},
		"and loses everything":        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := size(t)
			allowFiles(t, uint64(2*n+1000))
			server, b := redistest.Start(t, test.args...), newService(!test.keeps)
			watch := &leakCheck{admin: server.Client(t), client: newHTTPClient(t, n)}
			alone := watch.take(t)
			for i := range 2 {
				watch.instances = append(watch.instances, startInstance(t, b, server, i))
			}
			before := watch.take(t)

			c := newRequests(n, watch.instances)
			c.send(watch.client)
			await(t, "all requests to arrive", func() string {
				if now := b.inFlight.Load(); now < int64(n) {
					return fmt.Sprintf("%d of %d are in flight", now, n)
				}
				return ""
			})
			amid := watch.take(t)
			c.gateOpened = time.Now()
			b.openGate()
			c.awaitAnswers(t, n/10)
			await(t, "all who sleep", func() string {
				if slept, all := b.slept.Load(), n/perAccount/accountsPerSleeper; int(slept) < all {
					return fmt.Sprintf("%d of %d have begun", slept, all)
				}
				return ""
			})
			outage(t, c, b, server, watch)
			b.endSleep()
			c.awaitAnswers(t, n/10)
			outage(t, c, b, server, watch)
			c.done.Wait()
			t.Logf("%d requests, %d in flight at once: %s", n, b.most.Load(), c.table())

			defer checkAnswers(t, c, b, test.keeps) // after all requests have been answered
			watch.client.CloseIdleConnections()
			idle := before
			idle.redisConns = alone.redisConns + watch.pools()
			await(t, "services that have nothing to do", func() string { return watch.take(t).more(idle) })
			var kept map[string]int
			await(t, "keys that must go", func() string {
				left, stay := watch.leftoverKeys(t)
				kept = stay
				if len(left) == 0 {
					return ""
				}
				return fmt.Sprintf("%d, as %q", len(left), left[0])
			})
			after := watch.take(t)
			for _, s := range watch.instances {
				s.close(t)
			}
			await(t, "nothing left of the services", func() string { return watch.take(t).more(alone) })
			t.Logf("without services: %v\nbefore: %v\namid: %v\nafter: %v, %v\nat the end: %v", alone, before, amid, after, kept, watch.take(t))
		})
	}
}

// checkAnswers checks all answers and counts.
func checkAnswers(t *testing.T, c *requests, b *service, keeps bool) {
	t.Helper()
	if int(b.most.Load()) != len(c.all) {
		t.Errorf("%d of %d requests were in flight at once", b.most.Load(), len(c.all))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	known := &facts{byName: c.byName, gateOpened: c.gateOpened, ran: b.runs, lostAttempts: b.lostAttempts}
	answered, faults := map[string]int{}, 0
	for i := range c.answers {
		a := &c.answers[i]
		if a.code == "" && !a.replayed {
			answered[a.request.name]++
		}
		if fault := a.fault(known); fault != "" {
			if faults++; faults <= 10 {
				t.Errorf("%s: %s: %s %q", a.request.url, fault, a.kind(), a.body)
			}
		}
	}
	once := map[string]int{}
	for name, ran := range b.runs {
		if ran != 1 || answered[name] != 1 {
			t.Errorf("%s ran %d times, and its client got %d answers", name, ran, answered[name])
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
		if !b.lostKeys[name] { // a slow machine may lose a lease
			undisturbed.add(a)
		}
	}
	if all.fencedLost != 0 {
		t.Errorf("%d counts are lost of those that look at fencing numbers", all.fencedLost)
	}
	if u := undisturbed; keeps && (u.lost != 0 || u.overlaps != 0 || u.refused != 0) {
		t.Errorf("%d counts are lost, %d overlaps, %d late fences", u.lost, u.overlaps, u.refused)
	}
	if !keeps && all.overlaps == 0 {
		t.Error("no handlers overlapped, although all locks were lost: the counts show nothing")
	}
	t.Logf("counts: %+v, %d idempotent requests ran twice, %d leases lost, and %d waits ended with one", all, twice, len(b.lostKeys), len(b.lostAttempts))
}
