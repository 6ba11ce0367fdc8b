package engine

import (
	"context"

	"github.com/reqlock/reqlock/internal/store"
)

// An unsealed is an answer that its owner could not seal in time. Its commit counts as one that the
// store has not accepted: it becomes an open commit, which seals the answer before it is sent.
type unsealed struct {
	// seal returns the sealed answer. It may be called again after an error. It takes a limited time.
	seal  func(context.Context) ([]byte, error)
	fault *store.Fault // of the try before
}

// EndUnsealed is End by EndCommit for an answer that could not be sealed: it returns the error of that
// try. Callers of this engine get the record as it is.
func (h *Hold) EndUnsealed(ctx context.Context, record []byte, seal func(context.Context) ([]byte, error), failed error) (Loss, error) {
	h.say(func(s *said) { s.unsealed = &unsealed{seal, sealFault(failed)} })
	return h.End(ctx, EndCommit, record)
}

// sealFault returns the fault of a commit whose answer could not be sealed.
func sealFault(err error) *store.Fault { return &store.Fault{Temporary: true, Err: err} }

// notSealed returns the answer that is not sealed yet, or nil, after the end of the hold.
func (h *Hold) notSealed() *unsealed {
	if h.said == nil {
		return nil
	}
	return h.said.unsealed
}

// sendSealed sends the commit, and seals its answer before, if that is not done yet. It runs outside
// of the mutex, and the commit is marked as being sent.
func (c *openCommit) sendSealed() {
	r := c.request
	if c.unsealed != nil && c.sealed == nil {
		if err := c.seal(); err != nil {
			c.onResult(store.ReleaseResult{}, err)
			return
		}
	}
	if c.sealed != nil {
		r.Record = c.sealed
	}
	c.queue.engine.store.Release(r, c.onResult)
}

// seal seals the answer, until the commit or Close ends. The error is the fault of the commit.
func (c *openCommit) seal() error {
	mu := &c.queue.shard.mu
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	mu.Lock()
	c.stopSeal = stop
	if c.ended || c.last {
		stop()
	}
	mu.Unlock()
	sealed, err := c.unsealed.seal(ctx)
	mu.Lock()
	defer mu.Unlock()
	switch {
	case c.ended, err != nil && ctx.Err() != nil:
		return c.fault
	case err != nil:
		return sealFault(err)
	}
	c.sealed = sealed
	return nil
}

// endSeal ends the seal that is under way, for a caller with the mutex.
func (c *openCommit) endSeal() {
	if c.stopSeal != nil {
		c.stopSeal()
	}
}
