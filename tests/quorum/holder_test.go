package quorum

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// A holder keeps a lease until release.
type holder struct {
	process *process
	lease   *core.Lease
	granted time.Time
	lost    atomic.Pointer[time.Time] // when the context of the lease ended
}

// hold waits for a key and keeps it.
func (p *process) hold(t *testing.T, key string, opts ...core.Option) *holder {
	t.Helper()
	lease, err := p.locks.With(append([]core.Option{core.WithWait(patience)}, opts...)...).Lock(context.Background(), key)
	if err != nil {
		t.Fatalf("hold %s: %v", key, err)
	}
	h := &holder{process: p, lease: lease, granted: time.Now()}
	context.AfterFunc(lease.Context(), func() {
		now := time.Now()
		h.lost.Store(&now)
	})
	t.Cleanup(func() { _ = lease.Release(context.Background()) }) // if the test fails before
	return h
}

// release ends the hold and returns the error of Release. If this process did not run
// for a while, the release may be unconfirmed.
func (h *holder) release() error {
	h.record()
	started := time.Now()
	err := h.lease.Release(context.Background())
	if h.process.mayExcuse(err, started) {
		return nil
	}
	return err
}

// record records a hold that ends now, if it has not ended before.
func (h *holder) record() {
	ended := earlier(time.Now(), h.lease.ValidUntil())
	if lost := h.lost.Load(); lost != nil {
		ended = earlier(ended, *lost)
	}
	r := h.process.history
	r.Add(&history.Hold{
		Key: h.lease.Key(), Holder: h.process.name + ", a holder", Granted: r.At(h.granted), Ended: r.At(ended),
	})
}

// wantValid fails the test if the lease is lost.
func (h *holder) wantValid(t *testing.T) {
	t.Helper()
	if h.lease.Context().Err() != nil {
		t.Errorf("%s is lost: %v", h.lease.Key(), context.Cause(h.lease.Context()))
	}
}

// awaitRenewal returns when the lease was renewed by a command sent after that time.
func (h *holder) awaitRenewal(t *testing.T, since time.Time) {
	t.Helper()
	suite.Eventually(t, "the lease is renewed, or lost", func() bool {
		return h.lease.ValidUntil().After(since.Add(ttl)) || h.lease.Context().Err() != nil
	})
	h.wantValid(t)
}

// awaitLoss returns when the holder is informed of the loss of its lease.
func (h *holder) awaitLoss(t *testing.T) {
	t.Helper()
	suite.Eventually(t, "the holder is informed of the loss", func() bool { return h.lost.Load() != nil })
}
