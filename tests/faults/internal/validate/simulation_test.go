package validate

import (
	"container/heap"
	"fmt"
	"math/rand/v2"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// A simulation makes correct histories: of a correct server, a network that loses replies,
// and clients that die or are paused. It depends only on its seed.
type simulation struct {
	history.History
	*rand.Rand
	now         int64
	events      events
	locks       map[lock]*simulatedLock
	dead        map[int]bool
	pausedUntil map[int]int64 // until when a process is paused
	names       int           // of leases and processes so far
	isLossy     bool
	wanted      int  // how many calls to make
	readersOnly bool // all calls are for the key of readers and writers
	flaw        flaw
}

// A flaw is a mistake of the simulated server.
type flaw string

const (
	secondHolder flaw = "grants a held lock, sometimes"
	releasesAny  flaw = "releases a key for any client"
	sameFence    flaw = "gives the same fence to all"
	rerunsDone   flaw = "runs a request again that is done"
	countsFirst  flaw = "counts each attempt as the first"
	ignoresLimit flaw = "grants a shared lease beyond its limit, sometimes"
	joinsWriter  flaw = "grants a shared lease beside an exclusive one, sometimes"
	passesQueue  flaw = "grants shared leases while the head of the queue waits"
	strandsQueue flaw = "serves no waiter at a release"
)

// An event is a function to call at a time.
type event struct {
	at int64
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// simulate makes a correct history of that many calls. If it is lossy, replies are lost,
// processes die or are paused, and the server may lose all its data once.
func simulate(seed uint64, calls int, lossy bool) *history.History {
	return simulateFlawed(seed, calls, lossy, "")
}

// simulateFlawed is simulate with a flaw of the server.
func simulateFlawed(seed uint64, calls int, lossy bool, broken flaw) *history.History {
	w := &simulation{
		History: history.History{Name: "simulated", Deployment: "server", Seed: seed, TTL: ttl * ms, Claim: claim * ms, Begun: 1},
		Rand:    rand.New(rand.NewPCG(seed, 1)),
		now:     1, locks: map[lock]*simulatedLock{}, dead: map[int]bool{}, pausedUntil: map[int]int64{},
		isLossy: lossy, wanted: calls, flaw: broken, readersOnly: broken == passesQueue,
	}
	for client := range 8 {
		w.startClient(client)
	}
	if lossy {
		w.Disruptions = append(w.Disruptions, history.Disruption{Name: "lossy", From: 1})
		w.in(w.upTo(400), w.failProcess)
		if seed%2 == 0 {
			w.in(w.upTo(3000), w.loseData)
		}
	}
	for len(w.events) > 0 {
		next := heap.Pop(&w.events).(event)
		w.now = max(w.now+1, next.at)
		next.do()
	}
	w.Ended = w.now + 1
	return &w.History
}

// upTo returns a random time of at most that many ms.
func (w *simulation) upTo(limit int64) int64 { return 1 + w.Int64N(limit*ms) }

// in schedules a function.
func (w *simulation) in(after int64, do func()) { heap.Push(&w.events, event{w.now + after, do}) }

// chance returns true in that many of 100 cases.
func (w *simulation) chance(percent int) bool { return w.IntN(100) < percent }

func (w *simulation) name(what string) string {
	w.names++
	return fmt.Sprint(what, w.names)
}

func (w *simulation) lock(of lock) *simulatedLock {
	if w.locks[of] == nil {
		w.locks[of] = &simulatedLock{out: map[string]simulatedHolder{}, version: map[bool]int64{}}
	}
	return w.locks[of]
}

// failProcess kills or pauses a process.
func (w *simulation) failProcess() {
	if len(w.Ops) >= w.wanted {
		return
	}
	w.in(w.upTo(400), w.failProcess)
	if len(w.Ops) == 0 {
		return
	}
	victim := w.Ops[len(w.Ops)-1]
	if w.dead[victim.Process] || w.pausedUntil[victim.Process] > w.now {
		return
	}
	if w.chance(50) {
		until := w.now + w.upTo(800)
		w.pausedUntil[victim.Process] = until
		w.ProcessFailures = append(w.ProcessFailures, history.ProcessFailure{Process: victim.Process, From: w.now, To: until})
		return
	}
	w.dead[victim.Process] = true
	w.ProcessFailures = append(w.ProcessFailures, history.ProcessFailure{Process: victim.Process, From: w.now})
	w.in(w.upTo(100), func() { w.startClient(victim.Client) })
}

// loseData deletes all leases and records. The versions of registers are not in Redis.
func (w *simulation) loseData() {
	loss := history.Disruption{Name: "loss", Loss: true, From: w.now - 1, To: w.now + 1}
	w.Disruptions = append(w.Disruptions, loss)
	for _, l := range w.locks {
		*l = simulatedLock{out: map[string]simulatedHolder{}, version: l.version, seen: l.seen}
	}
}
