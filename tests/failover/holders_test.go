package failover

import (
	"context"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

const (
	// longTTL is longer than a failover, even for a lease that is due for renewal when
	// the master fails. Leases are renewed after a third of their TTL.
	longTTL = 9 * time.Second
	// surelyOutlived is a failover that longTTL surely outlives. An election without a
	// winner takes longer.
	surelyOutlived = longTTL*2/3 - 2*time.Second
	// shortTTL is shorter than a failover.
	shortTTL = time.Second
	// elsewhereTTL ends before a Cluster replaces a master that does not answer, and has
	// room for a busy machine.
	elsewhereTTL = 2 * time.Second
)

// holders is the part of processes that hold a lock when the master fails. Another
// process waits for each of the locks.
type holders struct {
	*scenario
	process, other *process
	held           []*heldLease
	served         []chan struct{} // closed when the waiter was served
	oldSide        *heldLease      // of one lock, if there are two masters
	newSide        *heldLease
}

func (h *holders) start() {
	h.process, h.other = h.newProcess(0), h.newProcess(1)
	keys := h.keysAt(h.master, h.name+"-hold", 2)
	h.held = append(h.held,
		h.hold(h.process, "the long holder", keys[0], longTTL),
		h.hold(h.process, "the short holder", keys[1], shortTTL))
	for _, other := range h.others(h.master) {
		one := h.hold(h.process, "the holder at another master", h.keysAt(other, h.name+"-hold", 1)[0], elsewhereTTL)
		one.isElsewhere = true
		h.held = append(h.held, one)
	}
	for _, one := range h.held {
		key, done := one.Key(), make(chan struct{})
		h.served = append(h.served, done)
		h.group.Go(func() {
			defer close(done)
			h.turn(h.other, "the waiter after "+one.Name(), key)
		})
		suite.Eventually(h.t, "the next process waits", func() bool { return h.other.count(waiting, key) > 0 })
	}
}

func (h *holders) prepare() {}

// replaced makes two processes hold one lock if there are two masters.
func (h *holders) replaced() {
	if !h.failure.isSplit {
		return
	}
	key := h.name + "-both"
	h.oldSide = h.hold(newProcess(h.t, h.master.Client(h.t)), "the holder at the old master", key, shortTTL)
	h.newSide = h.hold(h.process, "the holder at the new master", key, shortTTL)
	for _, one := range []*heldLease{h.oldSide, h.newSide} {
		if err := one.Context().Err(); err != nil {
			h.t.Errorf("%s: %v", one.Name(), context.Cause(one.Context()))
		}
	}
}

func (h *holders) finish() {
	if h.failure.loss == all {
		long := h.held[0]
		suite.Eventually(h.t, "the holder of a lost key is informed", func() bool { return long.Context().Err() != nil })
		suite.AwaitClosed(h.t, "the waiter is served", h.served[0])
	}
	if h.failure.isSplit {
		suite.Eventually(h.t, "one of two holders is informed", func() bool { return h.oldSide.Context().Err() != nil })
		if h.oldSide.release() || !h.newSide.release() {
			h.t.Error("of two holders not the one at the old master was informed")
		}
	}
	kept := ""
	for i, one := range h.held {
		wasKept := one.release()
		switch {
		case one.isElsewhere && !wasKept && h.longestDelay() < elsewhereTTL/3:
			h.t.Errorf("%s lost its lock: %v", one.Name(), context.Cause(one.Context()))
		case one.ttl == longTTL && wasKept && h.failure.loss == all,
			one.ttl == longTTL && !wasKept && h.failure.loss == nothing && h.figures.promoted < surelyOutlived:
			h.t.Errorf("%s has kept its lock: %v", one.Name(), wasKept)
		}
		if i < 2 {
			kept += fmt.Sprintf("%s kept its lock: %v, ", one.Name(), wasKept)
		}
	}
	for _, done := range h.served {
		suite.AwaitClosed(h.t, "the waiter is served", done)
	}
	h.figures.note("%s", kept[:len(kept)-2])
}
