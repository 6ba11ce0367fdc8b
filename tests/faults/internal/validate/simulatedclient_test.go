package validate

import (
	"fmt"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// A simulatedClient is a client of a simulation, alone in its process.
type simulatedClient struct {
	*simulation
	process, client int
}

// A simulatedLease is a lease of a simulated client.
type simulatedLease struct {
	key         lock
	limit       int
	lease       string
	fence       int64
	valid       int64
	over        bool  // it has ended, or is about to end
	endReported int64 // never if its end was not reported
	extended    bool
	version     map[bool]int64
}

func (w *simulation) startClient(client int) {
	w.names++
	c := &simulatedClient{w, w.names, client}
	c.later(w.upTo(20), c.ask)
}

// later calls a function after a time, unless the process is dead. If the process is
// paused, later waits until it continues.
func (c *simulatedClient) later(after int64, do func()) {
	c.in(after, func() {
		switch until := c.pausedUntil[c.process]; {
		case c.dead[c.process]:
		case until > c.now:
			c.later(until-c.now, do)
		default:
			do()
		}
	})
}

// call records a call, and returns the function that records its return.
func (c *simulatedClient) call(op history.Op) (back func(history.Outcome, func(*history.Op))) {
	op.Process, op.Client, op.Call = c.process, c.client, c.now
	c.Ops = append(c.Ops, op)
	i := len(c.Ops) - 1
	return func(outcome history.Outcome, more func(*history.Op)) {
		c.Ops[i].Return, c.Ops[i].Outcome = c.now, outcome
		if more != nil {
			more(&c.Ops[i])
		}
	}
}

// send executes a function on the server, and then handles its reply, or its loss.
func (c *simulatedClient) send(serve func() (reply func()), lost func()) {
	c.in(c.upTo(3), func() {
		reply := serve()
		if c.isLossy && c.chance(3) {
			reply = lost
		}
		c.later(c.upTo(3), reply)
	})
}

func (c *simulatedClient) idle() { c.later(c.upTo(30), c.ask) }

// ask requests a lock or begins an attempt.
func (c *simulatedClient) ask() {
	switch {
	case len(c.Ops) >= c.wanted:
	case !c.readersOnly && c.chance(30):
		c.begin()
	default:
		kind := history.Lock
		if c.chance(20) {
			kind = history.Try
		}
		h := &simulatedLease{lease: c.name("l"), endReported: never}
		h.key.key, h.limit = c.chooseKey()
		back := c.call(history.Op{Kind: kind, Key: h.key.key, Limit: h.limit})
		c.wait(kind, h, back)
	}
}

// chooseKey chooses a key, and the limit of a lease of it: an exclusive one, one of two
// permits, or that of a reader or a writer.
func (c *simulatedClient) chooseKey() (key string, limit int) {
	switch n := c.IntN(4); {
	case c.readersOnly && c.chance(4):
		return "shared", 0
	case c.readersOnly:
		return "shared", history.Unlimited
	case n < 2:
		return fmt.Sprint("k", n), 0
	case n == 2:
		return "permits", 2
	case c.chance(25):
		return "shared", 0
	default:
		return "shared", history.Unlimited
	}
}

// wait requests a lock until the server grants it.
func (c *simulatedClient) wait(kind history.Kind, h *simulatedLease, back func(history.Outcome, func(*history.Op))) {
	sent := c.now
	c.send(func() func() {
		l := c.lock(h.key)
		if c.take(l, h.lease, h.limit, kind == history.Lock) {
			h.fence, h.valid = l.out[h.lease].fence, sent+ttl*ms
			return func() { c.granted(h, back, 0, "") }
		}
		if kind == history.Try {
			return func() { back(history.Busy, nil); c.idle() }
		}
		return func() { c.later(c.upTo(20), func() { c.wait(kind, h, back) }) }
	}, func() { back(history.Unavailable, nil); c.idle() })
}

// granted works under a lease, and ends it.
func (c *simulatedClient) granted(h *simulatedLease, back func(history.Outcome, func(*history.Op)), number int, policy history.Policy) {
	back(history.Granted, func(op *history.Op) {
		op.Lease, op.Episode, op.Fence, op.ValidUntil = h.lease, h.lease, h.fence, h.valid
		op.Number, op.Policy = number, policy
	})
	c.reportLeaseEnd(h)
	h.version = map[bool]int64{}
	for _, fenced := range []bool{false, true} {
		h.version[fenced] = c.lock(h.key).version[fenced]
	}
	c.lock(h.key).seen = max(c.lock(h.key).seen, h.fence)
	c.read(h, 0)
	work := c.upTo(60)
	if c.isLossy && c.chance(3) { // leases are not renewed here: without losses none expires
		work = c.upTo(900)
	}
	c.later(work, func() { c.finish(h, number) })
}

// reportLeaseEnd reports the end of the lease.
func (c *simulatedClient) reportLeaseEnd(h *simulatedLease) {
	c.later(max(1, h.valid-c.now), func() {
		switch {
		case h.over || h.endReported != never:
		case h.valid > c.now:
			c.reportLeaseEnd(h)
		default:
			h.endReported = c.now
			c.Ops = append(c.Ops, history.Op{
				Kind: history.LeaseEnd, Process: c.process, Client: c.client, Key: h.key.key, Call: c.now, Lease: h.lease, ValidUntil: h.valid,
			})
		}
	})
}

// finish writes to the registers and ends the lease, or extends it first.
func (c *simulatedClient) finish(h *simulatedLease, number int) {
	reliedUntil := min(c.now, h.endReported, h.valid)
	if reliedUntil == c.now && !h.key.attempt && !h.extended && c.chance(10) {
		h.extended = true
		c.extend(h)
		return
	}
	h.over = true
	if h.key.attempt {
		c.answer(h, number, reliedUntil)
		return
	}
	if reliedUntil == c.now {
		c.read(h, c.now)
	}
	if l := c.lock(h.key); h.limit == 0 && reliedUntil == c.now && h.fence >= l.seen {
		for fenced, version := range h.version {
			c.Accesses = append(c.Accesses, history.Access{
				At: c.now, Process: c.process, Client: c.client, Key: h.key.key, Fenced: fenced, Write: true, Fence: h.fence, Version: version,
			})
			l.version[fenced]++
		}
	}
	end := history.Op{Kind: history.Release, Key: h.key.key, Lease: h.lease, ValidUntil: h.valid, ReliedUntil: reliedUntil}
	back := c.call(end)
	c.send(func() func() {
		l := c.lock(h.key)
		if !c.holds(l, h.lease) && c.flaw != releasesAny {
			return func() { back(history.Lost, nil); c.idle() }
		}
		c.free(l, h.lease)
		return func() { back(history.Done, nil); c.idle() }
	}, func() { back(history.Unavailable, nil); c.idle() })
}

// read reads the unfenced register under a shared lease.
func (c *simulatedClient) read(h *simulatedLease, checkedAt int64) {
	if h.limit == history.Unlimited {
		c.Accesses = append(c.Accesses, history.Access{
			At: c.now, Process: c.process, Client: c.client, Key: h.key.key, Fence: h.fence, Version: c.lock(h.key).version[false], CheckedAt: checkedAt,
		})
	}
}

func (c *simulatedClient) extend(h *simulatedLease) {
	back := c.call(history.Op{Kind: history.Extend, Key: h.key.key, Lease: h.lease})
	sent, was := c.now, h.valid
	on := func() { c.later(c.upTo(60), func() { c.finish(h, 0) }) }
	c.send(func() func() {
		l := c.lock(h.key)
		if !c.holds(l, h.lease) {
			return func() { back(history.Lost, nil); on() }
		}
		one := l.out[h.lease]
		one.expires = max(one.expires, c.now+ttl*ms)
		l.out[h.lease] = one
		return func() {
			if h.endReported == never {
				h.valid = max(was, sent+ttl*ms)
			}
			back(history.Done, func(op *history.Op) { op.ValidUntil = h.valid })
			on()
		}
	}, func() { back(history.Unavailable, nil); on() })
}
