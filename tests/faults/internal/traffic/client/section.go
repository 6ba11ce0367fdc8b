package client

import (
	"context"
	"time"
)

// Versions are the versions of the registers of a key that a holder has read.
type versions struct{ fenced, plain int64 }

// read reads the registers of the key: only the unfenced one if the lease has no fencing
// number. It returns false if the register has seen a later holder.
func (c *client) read(h *hold) (seen versions, ok bool) {
	fence := h.lease.Fence()
	var err error
	if fence != 0 {
		seen.fenced, ok, err = c.user.Read(h.key, true, fence)
		must(err)
		if !ok {
			return versions{}, false
		}
	}
	seen.plain, _, err = c.user.Read(h.key, false, fence)
	must(err)
	return seen, true
}

// write writes the registers, based on the versions that were read. The fenced register
// checks the write itself. The client writes the unfenced one only if its lease is valid,
// or if it is careless.
func (c *client) write(h *hold, seen versions, careless bool) {
	fence := h.lease.Fence()
	if fence != 0 {
		_, err := c.user.Write(h.key, true, fence, seen.fenced, 0)
		must(err)
	}
	looked, valid := int64(0), careless
	if !careless {
		looked, valid = h.isValid()
	}
	if valid {
		_, err := c.user.Write(h.key, false, fence, seen.plain, looked)
		must(err)
	}
}

// section is what a client does under its locks: it reads all registers, works, and writes
// the registers. It stops working when the first lease has ended.
func (c *client) section(holds ...*hold) {
	ctx := holds[0].lease.Context()
	seen := make([]versions, len(holds))
	for i, h := range holds {
		var ok bool
		if seen[i], ok = c.read(h); !ok {
			return
		}
	}
	c.work(ctx)
	if c.chance(5) {
		holds[0].extend()
	}
	for i, h := range holds {
		c.write(h, seen[i], false)
	}
}

// work waits: mostly up to two milliseconds or not at all, and seldom up to three TTLs, so
// that a lease that is not renewed ends while it is held.
func (c *client) work(ctx context.Context) {
	switch n := c.random.IntN(100); {
	case n < 1:
		rest(ctx, c.upTo(3*c.TTL))
	case n < 60:
		rest(ctx, c.upTo(2*time.Millisecond))
	}
}
