package waiting

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/subprocess"
	"github.com/reqlock/reqlock/tests/internal/clock"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// workers are the worker processes of a test, with the servers and the table that they
// share.
type workers struct {
	t        *testing.T
	servers  *redistest.Deployment
	admin    redis.UniversalClient
	admins   []*redis.Client // of each server, where it is asked alone
	orders   orders          // of each worker, without its number
	table    *table
	deadline time.Time
	running  map[int]*subprocess.Process // those that were not killed
	failures []history.ProcessFailure    // of processes that were killed or stopped
}

// newWorkers returns no workers yet, on these servers. They must end within the patience.
func newWorkers(t *testing.T, servers *redistest.Deployment, o orders, patience time.Duration) *workers {
	t.Helper()
	w := &workers{
		t: t, servers: servers, admin: servers.Client(t), deadline: time.Now().Add(patience),
		running: map[int]*subprocess.Process{},
	}
	w.table, o.Table = newTable(t, o.Size)
	o.Redis = servers.Options()
	w.orders = o
	return w
}

// startOne starts a worker process, which runs the test of that name.
func (w *workers) startOne(process int, test string) {
	w.t.Helper()
	o := w.orders
	o.Process = process
	w.running[process] = subprocess.Start(w.t, test, o)
}

// startAll starts the processes, and lets them start their turns together.
func (w *workers) startAll(processes int, test string) {
	w.t.Helper()
	for p := range processes {
		w.startOne(p, test)
	}
	for p := range processes {
		w.await("all processes are ready", func() bool { return w.table.processes[p].ready.Load() != 0 })
	}
	w.table.head.start.Store(1)
}

// await returns once the condition holds. It fails the test at the deadline, or when a
// worker fails, and lists the callers that were not served.
func (w *workers) await(what string, condition func() bool) {
	w.t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		<-ticker.C
		if time.Now().After(w.deadline) {
			w.t.Fatalf("still not: %s\nnot served:\n%s\nin Redis: %s", what, w.unserved(), w.dumpRedis())
		}
		for p, worker := range w.running {
			if worker.HasEnded() && worker.Wait() != nil {
				w.t.Fatalf("worker %d failed during the wait for: %s: %v", p, what, worker.Wait())
			}
		}
	}
}

// history returns the calls in the table, and what became of the workers.
func (w *workers) history() history.History {
	h := w.table.history()
	h.ProcessFailures = w.failures
	return h
}

// unserved lists the callers that were not served.
func (w *workers) unserved() string {
	found := w.history().Holds().Service(now())
	return strings.Join(found[:min(len(found), 70)], "\n")
}

func (w *workers) dumpRedis() string {
	ctx := w.t.Context()
	var all []string
	keys, _ := redistest.Keys(ctx, w.admin, "*")
	for _, key := range keys {
		value := w.admin.Get(ctx, key).Val()
		if w.admin.Type(ctx, key).Val() == "list" {
			value = strings.Join(w.admin.LRange(ctx, key, 0, -1).Val(), " ")
		}
		all = append(all, fmt.Sprintf("%s = %s for %v", key, value, w.admin.PTTL(ctx, key).Val()))
	}
	return strings.Join(all, "; ") + "; channels " + strings.Join(w.admin.PubSubChannels(ctx, "*").Val(), " ")
}

// finish returns once all workers have ended, and fails the test if a worker failed.
func (w *workers) finish() {
	w.t.Helper()
	w.await("all workers end", w.finished)
	for p, worker := range w.running {
		if err := worker.Wait(); err != nil {
			w.t.Errorf("worker %d: %v", p, err)
		}
	}
}

func (w *workers) finished() bool {
	for _, worker := range w.running {
		if !worker.HasEnded() {
			return false
		}
	}
	return true
}

// kill kills a process. Its turn of a soak is no longer in the critical section.
func (w *workers) kill(process int) {
	w.t.Helper()
	w.failures = append(w.failures, history.ProcessFailure{Process: process, From: clock.Now()})
	w.running[process].Kill()
	delete(w.running, process)
	for i := range w.table.head.inside {
		inside := &w.table.head.inside[i]
		if id := inside.Load(); id != 0 && w.table.processOf(id) == process {
			inside.CompareAndSwap(id, 0)
		}
	}
}

// stop stops a process, and returns when it is stopped.
func (w *workers) stop(process int) {
	w.t.Helper()
	w.failures = append(w.failures, history.ProcessFailure{Process: process, From: clock.Now(), To: math.MaxInt64})
	if err := w.running[process].Pause(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workers) resume(process int) {
	w.t.Helper()
	if err := w.running[process].Resume(); err != nil {
		w.t.Fatal(err)
	}
	for i, failure := range w.failures {
		if failure.Process == process && failure.To == math.MaxInt64 {
			w.failures[i].To = clock.Now()
		}
	}
}

// linger makes the next holder of the process stay in the critical section, and returns
// the row of its turn once it does.
func (w *workers) linger(process int) *turnRow {
	w.t.Helper()
	linger := &w.table.head.linger
	linger.Store(int64(process) + 1)
	w.await("a holder lingers", func() bool { return linger.Load() < 0 })
	return w.table.turn(-linger.Load())
}
