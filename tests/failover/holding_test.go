package failover

import (
	"context"
	"fmt"
	"time"
)

const (
	// longTTL outlives a failover, and so does a lease that was not renewed when
	// the master failed. A third of it is the time until the next renewal.
	longTTL = 9 * time.Second
	// outlived is what it outlives surely: an election that nobody wins takes longer.
	outlived = longTTL*2/3 - 2*time.Second
	// shortTTL does not.
	shortTTL = time.Second
	// elsewhereTTL is over, too, before a master that does not answer is replaced in
	// a cluster, and has room for a busy machine.
	elsewhereTTL = 2 * time.Second
)

// holding is the part of those who hold a lock when the master fails. Another
// process waits for each.
type holding struct {
	*scene
	process, other *process
	held           []*held
	waited         []chan struct{}
	left, right    *held // of one lock, where there are two masters
}

func (h *holding) begin() {
	h.process, h.other = h.scene.process(0), h.scene.process(1)
	keys := h.keysAt(h.master, h.name+"-hold", 2)
	h.held = append(h.held,
		h.hold(h.process, "the long holder", keys[0], longTTL),
		h.hold(h.process, "the short holder", keys[1], shortTTL))
	for _, other := range h.others(h.master) {
		one := h.hold(h.process, "the holder elsewhere", h.keysAt(other, h.name+"-hold", 1)[0], elsewhereTTL)
		one.elsewhere = true
		h.held = append(h.held, one)
	}
	for _, one := range h.held {
		key, done := one.one.key, make(chan struct{})
		h.waited = append(h.waited, done)
		h.group.Go(func() {
			defer close(done)
			h.turn(h.other, "the next after "+one.one.by, key)
		})
		await(h.t, "the next one waits", func() bool { return h.other.told(waiting, key) > 0 })
	}
}

func (h *holding) poise() {}

// replace lets two processes hold one lock where there are two masters.
func (h *holding) replace() {
	if !h.failure.split {
		return
	}
	key := h.name + "-both"
	h.left = h.hold(newProcess(h.t, h.master.Client(h.t)), "the holder at the old master", key, shortTTL)
	h.right = h.hold(h.process, "the holder at the new master", key, shortTTL)
	for _, one := range []*held{h.left, h.right} {
		if err := one.lease.Context().Err(); err != nil {
			h.t.Errorf("%s: %v", one.one.by, context.Cause(one.lease.Context()))
		}
	}
}

func (h *holding) end() {
	if h.failure.loss == all {
		long := h.held[0]
		await(h.t, "who has lost the key is told", func() bool { return long.lease.Context().Err() != nil })
		awaitClosed(h.t, "the next one is served", h.waited[0])
	}
	if h.failure.split {
		await(h.t, "one of two holders is told", func() bool { return h.left.lease.Context().Err() != nil })
		if h.left.end(h.scene) || !h.right.end(h.scene) {
			h.t.Error("of two holders another one was told than that whose master went")
		}
	}
	kept := ""
	for i, one := range h.held {
		was := one.end(h.scene)
		switch {
		case one.elsewhere && !was && h.latest() < elsewhereTTL/3:
			h.t.Errorf("%s was told: %v", one.one.by, context.Cause(one.lease.Context()))
		case one.ttl == longTTL && was && h.failure.loss == all,
			one.ttl == longTTL && !was && h.failure.loss == nothing && h.figures.promoted < outlived:
			h.t.Errorf("%s has kept it: %v", one.one.by, was)
		}
		if i < 2 {
			kept += fmt.Sprintf("%s kept %v, ", one.one.by, was)
		}
	}
	for _, done := range h.waited {
		awaitClosed(h.t, "the next one is served", done)
	}
	h.figures.note("%s", kept[:len(kept)-2])
}
