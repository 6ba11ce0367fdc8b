package failover

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// handing is the part of two processes that hand a lock of the master to and fro.
// While that is replaced one of them waits, and has to be told again afterwards: a
// waiter that nobody tells lives by its timer.
type handing struct {
	*scene
	key       string
	observer  redis.UniversalClient
	processes [2]*process
	leases    [2]chan *core.Lease // that a process waits for, or has
	turns     int
	listen    time.Time // since when both do
}

// doubt is for how long a process that has begun to listen looks again whether it
// does so at the right master. Only after that has it to see by itself that the
// master was replaced.
const doubt = 4 * time.Second

func (h *handing) begin() {
	h.key = h.keysAt(h.master, h.name+"-handing", 1)[0]
	h.observer = h.client(h.t, 0, nil)
	for i := range h.processes {
		h.processes[i] = h.process(i)
	}
	h.wait(0)
	await(h.t, "the first of two processes has the lock", func() bool { return len(h.leases[0]) == 1 })
	h.wait(1)
	h.awaitLine()
	h.turn()
	h.listen = time.Now()
}

// wait makes a process wait for the lock, until the end of the scene: see scene.turn.
func (h *handing) wait(n int) {
	got := make(chan *core.Lease, 1)
	h.leases[n] = got
	h.group.Go(func() {
		lease, err := h.processes[n].locks.With(core.WithTTL(2*shortTTL)).Lock(h.ctx, h.key)
		if err != nil && h.ctx.Err() == nil {
			h.t.Errorf("to a process that others hand over to: %v", err)
		}
		got <- lease
	})
}

// awaitLine returns when one process stands in line. After a failure that may be
// the line of which Redis has lost all, and which is found by and by.
func (h *handing) awaitLine() {
	await(h.t, "one of two processes stands in line", func() bool {
		return h.observer.LLen(context.Background(), "{"+prefix+h.key+"}:q").Val() == 1
	})
}

// turn lets the one that has the lock give it to the other, and wait for it.
func (h *handing) turn() {
	has := h.turns % 2
	h.turns++
	h.giveBack(has)
	await(h.t, "the other process has the lock", func() bool { return len(h.leases[1-has]) == 1 })
	h.wait(has)
	h.awaitLine()
}

// giveBack releases the lease of a process.
func (h *handing) giveBack(n int) {
	var lease *core.Lease // nil where its process is stranded, which was reported
	select {
	case lease = <-h.leases[n]:
	default:
	}
	err := lease.Release(context.Background())
	if err != nil && !errors.Is(err, core.ErrLost) && !errors.Is(err, core.ErrUnavailable) {
		h.t.Errorf("the release of a lock that is handed over: %v", err)
	}
}

// poise lets time pass in scenes in which all that listens is to go on.
func (h *handing) poise() {
	if h.cluster != nil && h.failure.loss == nothing {
		time.Sleep(time.Until(h.listen.Add(doubt)))
	}
}

func (h *handing) replace() {}

// end lets them take turns until each was told by the other.
func (h *handing) end() {
	var before [2]int
	for i, p := range h.processes {
		before[i] = p.told(handed, h.key)
	}
	isTold := func() bool {
		return h.processes[0].told(handed, h.key) > before[0] && h.processes[1].told(handed, h.key) > before[1]
	}
	first := h.turns
	for deadline := time.Now().Add(patience); !isTold() && time.Now().Before(deadline) && !h.t.Failed(); {
		h.turn()
	}
	if !isTold() {
		h.t.Errorf("%d turns, and no process was told of its own", h.turns-first)
	}
	h.figures.note("handed over after %d turns", h.turns-first)
	has := h.turns % 2
	h.giveBack(has)
	await(h.t, "the last one has the lock", func() bool { return len(h.leases[1-has]) == 1 })
	h.giveBack(1 - has)
}
