package quorum

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A held is a lease that its holder keeps until end.
type held struct {
	process *process
	lease   *core.Lease
	granted time.Time
	told    atomic.Pointer[time.Time] // when its context ended
}

// hold waits for a key, and holds it.
func (p *process) hold(t *testing.T, key string, opts ...core.Option) *held {
	t.Helper()
	lease, err := p.locks.With(append([]core.Option{core.WithWait(patience)}, opts...)...).Lock(context.Background(), key)
	if err != nil {
		t.Fatalf("hold %s: %v", key, err)
	}
	h := &held{process: p, lease: lease, granted: time.Now()}
	context.AfterFunc(lease.Context(), func() {
		now := time.Now()
		h.told.Store(&now)
	})
	t.Cleanup(func() { _ = lease.Release(context.Background()) }) // where the test is broken off
	return h
}

// end gives the lease back, and returns what it is told. On a machine that stood still
// it may remain unconfirmed.
func (h *held) end() error {
	h.add()
	asked := time.Now()
	err := h.lease.Release(context.Background())
	if h.process.excused(err, asked) {
		return nil
	}
	return err
}

// add adds the hold to the history as one that ends now, if it has not yet.
func (h *held) add() {
	ended := earlier(time.Now(), h.lease.ValidUntil())
	if told := h.told.Load(); told != nil {
		ended = earlier(ended, *told)
	}
	h.process.history.add(h.lease.Key(), hold{h.process.name + ", who holds", h.granted, ended})
}

// wantKept fails the test if the lease is lost.
func (h *held) wantKept(t *testing.T) {
	t.Helper()
	if h.lease.Context().Err() != nil {
		t.Errorf("%s is lost: %v", h.lease.Key(), context.Cause(h.lease.Context()))
	}
}

// awaitRenewal returns when the lease was renewed by a command that was sent after
// that time.
func (h *held) awaitRenewal(t *testing.T, since time.Time) {
	t.Helper()
	await(t, "the lease is renewed, or lost", func() bool {
		return h.lease.ValidUntil().After(since.Add(ttl)) || h.lease.Context().Err() != nil
	})
	h.wantKept(t)
}
