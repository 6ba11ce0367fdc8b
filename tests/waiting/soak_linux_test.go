package waiting

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// soakEnv says how long a soak lasts, as in "2m".
const soakEnv = "REQLOCK_SOAK"

const (
	soakProcesses = 3 // at a time, beside the Lockers of the test itself
	soakOwn       = 2 // Lockers of the test itself
	linger        = 5 * time.Second
)

// figures are what must be at the end as it was at the start.
type figures struct {
	goroutines, descriptors, connections, channels int
	heap                                           int64
	keys                                           []string
}

func (c *crew) figures() figures {
	c.t.Helper()
	ctx := c.t.Context()
	keys, err := c.admin.Keys(ctx, "*").Result()
	if err != nil {
		c.t.Fatal(err)
	}
	slices.Sort(keys)
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		c.t.Fatal(err)
	}
	return figures{
		goroutines:  runtime.NumGoroutine(),
		descriptors: len(descriptors),
		connections: strings.Count(c.admin.ClientList(ctx).Val(), "\n"),
		channels:    len(c.admin.PubSubChannels(ctx, "*").Val()),
		heap:        liveHeap(),
		keys:        keys,
	}
}

func (f figures) String() string {
	return fmt.Sprintf("%d goroutines, %d KiB of heap, %d descriptors, %d connections, %d channels, keys %q",
		f.goroutines, f.heap>>10, f.descriptors, f.connections, f.channels, f.keys)
}

// soakTime is how long the soak of this run lasts.
func soakTime(t *testing.T) time.Duration {
	t.Helper()
	text := cmp.Or(os.Getenv(soakEnv), "4s")
	lasts, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", soakEnv, err)
	}
	return lasts
}

// TestSoak does all that callers do, and lets processes crash and subscriptions
// break. Afterwards all is as it was.
func TestSoak(t *testing.T) {
	lasts := soakTime(t)
	const killPause = 700 * time.Millisecond
	o := orders{
		// Each process that is killed has a row, and so has each that comes after it.
		Shape: shape{Processes: soakProcesses + soakOwn + int(lasts/killPause) + 1, Goroutines: 8, Turns: 1},
		TTL:   time.Second, Bound: 250 * time.Millisecond,
	}
	c := newCrew(t, redistest.OnServer.Start(t), o, lasts+time.Minute)
	c.warm()
	start := c.figures()
	c.muster(soakProcesses, "TestSoaker")

	var own []*soaker
	var clients []*redis.Client
	var group sync.WaitGroup
	for i := range soakOwn {
		mine := c.orders
		mine.Process = o.Shape.Processes - 1 - i
		rdb := redis.NewClient(&redis.Options{Addr: c.orders.Redis.Addrs[0]})
		clients = append(clients, rdb)
		s := newSoaker(t, rdb, mine, c.table)
		own = append(own, s)
		group.Go(s.run)
	}

	crashes, cuts := c.disturb(time.Now().Add(lasts), killPause)
	c.settle()
	c.table.head.stop.Store(1)
	group.Wait()
	c.finish()

	// The Lockers of the test are still open: what is idle ends by itself.
	c.deadline = time.Now().Add(2*o.TTL + linger + 30*time.Second)
	fenced := []string{"{reqlock:soak:3}:f"} // which lives for days, by design
	c.await("channels and keys are gone", func() bool {
		now := c.figures()
		return now.channels == 0 && slices.Equal(now.keys, fenced)
	})
	for i, s := range own {
		if err := s.locks.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := clients[i].Close(); err != nil {
			t.Error(err)
		}
	}
	var last figures
	c.await("connections and goroutines are back at their start", func() bool {
		last = c.figures()
		return last.goroutines <= start.goroutines && last.connections <= start.connections && last.descriptors <= start.descriptors
	})
	if last.heap > start.heap+spared {
		t.Errorf("%d KiB of heap more than at the start", (last.heap-start.heap)>>10)
	}
	t.Logf("%v, %d crashes, %d subscriptions cut", lasts, crashes, cuts)
	t.Logf("at the start: %v", start)
	t.Logf("at the end:   %v", last)
	c.tellSoaked(lasts >= 10*time.Second)
}

// warm does once what the test's own Lockers will do, so that what is made once
// in a process is there at the start, and returns when all is quiet.
func (c *crew) warm() {
	c.t.Helper()
	for range 2 {
		rdb := redis.NewClient(&redis.Options{Addr: c.orders.Redis.Addrs[0]})
		s := newSoaker(c.t, rdb, c.orders, c.table)
		for range 100 {
			if err := s.locks.Do(c.t.Context(), theKey, func(context.Context) error { return nil }); err != nil {
				c.t.Fatal(err)
			}
		}
		if err := s.locks.Close(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
		if err := rdb.Close(); err != nil {
			c.t.Fatal(err)
		}
	}
	before, quiet := 0, 0
	c.await("all is quiet", func() bool {
		now := c.figures()
		quiet++
		if now.goroutines != before || now.connections != 1 {
			before, quiet = now.goroutines, 0
		}
		return quiet == 5
	})
}

// disturb kills processes, which are replaced, and cuts subscriptions, until
// the end.
func (c *crew) disturb(end time.Time, killPause time.Duration) (crashes, cuts int64) {
	c.t.Helper()
	running := []int{0, 1, 2}
	next := len(running)
	nextKill, nextCut := time.Now().Add(killPause), time.Now()
	c.await("the soak has lasted", func() bool {
		now := time.Now()
		if now.After(nextKill) && now.Before(end) {
			victim := rand.IntN(len(running))
			c.kill(running[victim])
			c.enlist(next, "TestSoaker")
			running[victim] = next
			next++
			crashes++
			nextKill = now.Add(killPause + rand.N(killPause))
		}
		if now.After(nextCut) {
			cuts += c.admin.ClientKillByFilter(c.t.Context(), "TYPE", "pubsub").Val()
			nextCut = now.Add(50*time.Millisecond + rand.N(500*time.Millisecond))
		}
		return now.After(end)
	})
	return crashes, cuts
}

// settle returns once all processes have begun, and each key has been held since
// the last crash. So no key is left to the dead: whoever releases a key passes
// over the dead of its line.
func (c *crew) settle() {
	c.t.Helper()
	for p := range c.members {
		c.await("all have begun", func() bool { return c.table.processes[p].ready.Load() != 0 })
	}
	var before [soakKeys]int64
	for key := range before {
		before[key] = c.table.head.served[key].Load()
	}
	c.await("each key is held again", func() bool {
		for key := range before {
			if c.table.head.served[key].Load() < before[key]+20 {
				return false
			}
		}
		return true
	})
}

// tellSoaked logs what the processes tell of themselves, and fails the test if
// they overlapped or left something behind, or if a soak that was long had no
// end of some kind.
func (c *crew) tellSoaked(long bool) {
	c.t.Helper()
	var ends [len(endNames)]int64
	goroutines, heap := int64(0), int64(0)
	for p := range c.table.processes {
		row := &c.table.processes[p].soaked
		for i := range ends {
			ends[i] += row.ends[i].Load()
		}
		if n := row.overlaps.Load(); n > 0 {
			c.t.Errorf("process %d: %d times somebody else was let in", p, n)
		}
		if row.heap[1].Load() != 0 {
			goroutines = max(goroutines, row.goroutines[1].Load()-row.goroutines[0].Load())
			heap = max(heap, row.heap[1].Load()-row.heap[0].Load())
		}
	}
	var told []string
	for i, name := range endNames {
		told = append(told, fmt.Sprintf("%d %s", ends[i], name))
		if long && ends[i] == 0 && i != endUnavailable {
			c.t.Errorf("no call was %s", name)
		}
	}
	c.t.Logf("calls: %s; a process ends with at most %d goroutines and %d KiB of heap more than it began with",
		strings.Join(told, ", "), goroutines, heap>>10)
	if heap > 2*spared {
		c.t.Errorf("a process ended with %d KiB of heap more than it began with", heap>>10)
	}
}
