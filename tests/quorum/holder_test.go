package quorum

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// A holder keeps a lease until release.
type holder struct {
	*history.Lease
	process *process
}

// hold waits for a key and keeps it.
func (p *process) hold(t *testing.T, key string, opts ...core.Option) *holder {
	t.Helper()
	locks := p.locks.With(append([]core.Option{core.WithWait(patience)}, opts...)...)
	lease, err := p.history.Lock(context.Background(), locks, history.Op{Name: p.name + ", a holder", Key: key})
	if err != nil {
		t.Fatalf("hold %s: %v", key, err)
	}
	t.Cleanup(func() { _ = lease.Lease.Release(context.Background()) }) // if the test fails before
	return &holder{lease, p}
}

// release ends the hold and returns the error of Release. If this process did not run
// for a while, the release may be unconfirmed.
func (h *holder) release() error {
	started := time.Now()
	err := h.Release(context.Background())
	if h.process.mayExcuse(err, started) {
		return nil
	}
	return err
}

// wantValid fails the test if the lease is lost.
func (h *holder) wantValid(t *testing.T) {
	t.Helper()
	if h.Context().Err() != nil {
		t.Errorf("%s is lost: %v", h.Key(), context.Cause(h.Context()))
	}
}

// awaitRenewal returns when the lease was renewed by a command sent after that time.
func (h *holder) awaitRenewal(t *testing.T, since time.Time) {
	t.Helper()
	suite.Eventually(t, "the lease is renewed, or lost", func() bool {
		return h.ValidUntil().After(since.Add(ttl)) || h.Context().Err() != nil
	})
	h.wantValid(t)
}

// awaitLoss returns when the holder is informed of the loss of its lease.
func (h *holder) awaitLoss(t *testing.T) {
	t.Helper()
	suite.Eventually(t, "the holder is informed of the loss", func() bool { return !h.LostAt().IsZero() })
}
