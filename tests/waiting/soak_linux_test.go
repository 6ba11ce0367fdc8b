package waiting

import (
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
	"github.com/reqlock/reqlock/internal/testkit/subprocess"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// soakEnv is how long a soak lasts, such as "2m".
const soakEnv = "REQLOCK_SOAK"

const (
	soakProcesses = 3 // at a time, besides the Lockers of the test itself
	soakOwn       = 2 // Lockers of the test itself
	idleTime      = 5 * time.Second
)

// resources are what must be released at the end, except memory.
type resources struct {
	goroutines, descriptors, connections, channels int
	keys                                           []string
}

func (w *workers) resources() resources {
	w.t.Helper()
	ctx := w.t.Context()
	keys, err := w.admin.Keys(ctx, "*").Result()
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(keys)
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		w.t.Fatal(err)
	}
	return resources{
		goroutines:  runtime.NumGoroutine(),
		descriptors: len(descriptors),
		connections: strings.Count(w.admin.ClientList(ctx).Val(), "\n"),
		channels:    len(w.admin.PubSubChannels(ctx, "*").Val()),
		keys:        keys,
	}
}

func (f resources) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d connections, %d channels, keys %q",
		f.goroutines, f.descriptors, f.connections, f.channels, f.keys)
}

// soakTime returns how long a soak lasts: as the environment says, or four seconds in the
// full tier, or short.
func soakTime(t *testing.T, short time.Duration) time.Duration {
	t.Helper()
	usual := short
	if suite.IsFull() {
		usual = 4 * time.Second
	}
	return suite.Duration(t, soakEnv, usual)
}

// Callers do everything that callers can do, while processes crash and subscriptions
// break. Afterwards all resources are released. The soak has a process of its own, because it
// counts goroutines and measures memory.
func TestSoak(t *testing.T) {
	suite.Full(t, "is a soak, which ends with an idle time of 5 s")
	t.Parallel()
	p := subprocess.Start(t, "TestSoakProcess", soakTime(t, 4*time.Second))
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	figures, _ := p.ReportAfter("figures:")
	t.Log(figures)
}

// TestSoakProcess is the process of the soak, which starts the workers.
func TestSoakProcess(t *testing.T) {
	duration := subprocess.Orders[time.Duration](t)
	const killPause = 400 * time.Millisecond
	o := orders{
		// Each killed process and each new process has a row.
		Size: tableSize{Processes: soakProcesses + soakOwn + int(duration/killPause) + 1, Goroutines: 8, Turns: 1},
		TTL:  time.Second, Timeout: 250 * time.Millisecond,
	}
	w := newWorkers(t, redistest.OnServer.Start(t), o, duration+time.Minute)
	w.warmUp()
	start, heap := w.resources(), liveHeap()
	w.startAll(soakProcesses, "TestSoakWorker")

	var own []*soakWorker
	var clients []*redis.Client
	var group sync.WaitGroup
	for i := range soakOwn {
		mine := w.orders
		mine.Process = o.Size.Processes - 1 - i
		rdb := redis.NewClient(&redis.Options{Addr: w.orders.Redis.Addrs[0]})
		clients = append(clients, rdb)
		s := newSoakWorker(t, rdb, mine, w.table)
		own = append(own, s)
		group.Go(s.run)
	}

	crashes, cuts := w.disturb(time.Now().Add(duration), killPause)
	w.awaitRecovery()
	w.table.head.stop.Store(1)
	group.Wait()
	w.finish()

	// The Lockers of the test are still open, but idle subscriptions end.
	w.deadline = time.Now().Add(2*o.TTL + idleTime + 30*time.Second)
	fenced := []string{"{reqlock:soak:3}:f"} // its TTL is days
	w.await("channels and keys are gone", func() bool {
		time.Sleep(20 * time.Millisecond) // it takes seconds, and each look has a price
		now := w.resources()
		return now.channels == 0 && slices.Equal(now.keys, fenced)
	})
	for i, s := range own {
		s.close()
		if err := clients[i].Close(); err != nil {
			t.Error(err)
		}
	}
	var last resources
	w.await("connections and goroutines are back at their start", func() bool {
		last = w.resources()
		return last.goroutines <= start.goroutines && last.connections <= start.connections && last.descriptors <= start.descriptors
	})
	heap = liveHeap() - heap
	if heap > heapTolerance {
		t.Errorf("%d KiB of heap more than at the start", heap>>10)
	}
	calls := w.checkSoak(duration >= 10*time.Second)
	figures := fmt.Sprintf("%v, %d crashes, %d subscriptions cut; at the start %v; at the end %v, %d KiB of heap more; %s",
		duration, crashes, cuts, start, last, heap>>10, calls)
	subprocess.Report("figures:", figures)
	t.Log(figures)
}

// warmUp does once what the Lockers of the test will do, so that resources that a process
// allocates once exist at the start. It returns when the resources no longer change.
func (w *workers) warmUp() {
	w.t.Helper()
	for range 2 {
		rdb := redis.NewClient(&redis.Options{Addr: w.orders.Redis.Addrs[0]})
		s := newSoakWorker(w.t, rdb, w.orders, w.table)
		for range 100 {
			if err := s.locks.Do(w.t.Context(), theKey, func(context.Context) error { return nil }); err != nil {
				w.t.Fatal(err)
			}
		}
		s.close()
		if err := rdb.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
	before, quiet := 0, 0
	w.await("the resources no longer change", func() bool {
		now := w.resources()
		quiet++
		if now.goroutines != before || now.connections != 1 {
			before, quiet = now.goroutines, 0
		}
		return quiet == 5
	})
}

// disturb kills and replaces processes, and cuts subscriptions, until the end.
func (w *workers) disturb(end time.Time, killPause time.Duration) (crashes, cuts int64) {
	w.t.Helper()
	running := []int{0, 1, 2}
	next := len(running)
	nextKill, nextCut := time.Now().Add(killPause), time.Now()
	w.await("the soak has lasted", func() bool {
		now := time.Now()
		if now.After(nextKill) && now.Before(end) {
			victim := rand.IntN(len(running))
			w.kill(running[victim])
			w.startOne(next, "TestSoakWorker")
			running[victim] = next
			next++
			crashes++
			nextKill = now.Add(killPause + rand.N(killPause))
		}
		if now.After(nextCut) {
			cuts += w.admin.ClientKillByFilter(w.t.Context(), "TYPE", "pubsub").Val()
			nextCut = now.Add(50*time.Millisecond + rand.N(500*time.Millisecond))
		}
		return now.After(end)
	})
	return crashes, cuts
}

// awaitRecovery returns once all processes have started, and each key has been held since
// the last crash. Then no dead process is in a queue: releases skip dead waiters.
func (w *workers) awaitRecovery() {
	w.t.Helper()
	for p := range w.running {
		w.await("all have started", func() bool { return w.table.processes[p].ready.Load() != 0 })
	}
	var before [soakKeys]int64
	for key := range before {
		before[key] = w.table.head.served[key].Load()
	}
	w.await("each key is held again", func() bool {
		for key := range before {
			if w.table.head.served[key].Load() < before[key]+20 {
				return false
			}
		}
		return true
	})
}

// checkSoak returns what the processes reported. It fails the test if holds overlapped or a
// process leaked memory, or if a long soak had no call with some result.
func (w *workers) checkSoak(isLong bool) (figures string) {
	w.t.Helper()
	var results [len(resultNames)]int64
	goroutines, heap := int64(0), int64(0)
	for p := range w.table.processes {
		row := &w.table.processes[p].soak
		for i := range results {
			results[i] += row.results[i].Load()
		}
		if n := row.overlaps.Load(); n > 0 {
			w.t.Errorf("process %d: %d holds overlapped", p, n)
		}
		if row.heap[1].Load() != 0 {
			goroutines = max(goroutines, row.goroutines[1].Load()-row.goroutines[0].Load())
			heap = max(heap, row.heap[1].Load()-row.heap[0].Load())
		}
	}
	var counts []string
	for i, name := range resultNames {
		counts = append(counts, fmt.Sprintf("%d %s", results[i], name))
		if isLong && results[i] == 0 && i != unavailable {
			w.t.Errorf("no call was %s", name)
		}
	}
	if heap > 2*heapTolerance {
		w.t.Errorf("a process ended with %d KiB of heap more than it began with", heap>>10)
	}
	return fmt.Sprintf("calls: %s; a process ends with at most %d goroutines and %d KiB of heap more than it began with",
		strings.Join(counts, ", "), goroutines, heap>>10)
}
