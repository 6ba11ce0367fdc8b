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
	killed   map[int]time.Duration       // when a process was killed
	stopped  map[int][]span              // when a process was stopped
}

// A span is a part of time.
type span struct{ from, to time.Duration }

// newWorkers returns no workers yet, on these servers. They must end within the patience.
func newWorkers(t *testing.T, servers *redistest.Deployment, o orders, patience time.Duration) *workers {
	t.Helper()
	w := &workers{
		t: t, servers: servers, admin: servers.Client(t), deadline: time.Now().Add(patience),
		running: map[int]*subprocess.Process{}, killed: map[int]time.Duration{}, stopped: map[int][]span{},
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

// history returns the turns of the table, with what the workers cannot record themselves.
func (w *workers) history() turns {
	h := w.table.history()
	for _, one := range h {
		at, isKilled := w.killed[one.Process]
		switch {
		case one.Ended != 0:
		case isKilled:
			one.Killed, one.Ended = true, max(at, one.Granted+1)
		case one.IsServed(): // it is still inside
			one.Ended = now()
		}
		for _, stop := range w.stopped[one.Process] {
			if one.Asked <= stop.to && one.waitEnd() >= stop.from {
				one.resumed = stop.to
			}
		}
	}
	return h
}

// now is the time of the table.
func now() time.Duration { return time.Duration(clock.Now()) }

// unserved lists the callers that were not served.
func (w *workers) unserved() string {
	found := w.history().holds().Service(now())
	return strings.Join(found[:min(len(found), 70)], "\n")
}

// dumpRedis returns the keys and their values.
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

// finished reports whether all workers have ended.
func (w *workers) finished() bool {
	for _, worker := range w.running {
		if !worker.HasEnded() {
			return false
		}
	}
	return true
}

// kill kills a process. Its turn is no longer in the critical section.
func (w *workers) kill(process int) {
	w.t.Helper()
	w.killed[process] = now()
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
	w.stopped[process] = append(w.stopped[process], span{now(), math.MaxInt64})
	if err := w.running[process].Pause(); err != nil {
		w.t.Fatal(err)
	}
}

// resume resumes a process.
func (w *workers) resume(process int) {
	w.t.Helper()
	if err := w.running[process].Resume(); err != nil {
		w.t.Fatal(err)
	}
	stopped := w.stopped[process]
	stopped[len(stopped)-1].to = now()
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
