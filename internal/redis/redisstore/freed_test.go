package redisstore

import (
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// An operation that waits for its reuse keeps neither its caller nor the request.
func TestFreedOperationsKeepNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Reuse(t).Client(t)).Store
	r := storetest.AttemptRequest(storetest.Me1)
	acquires, renewals, releases := s.acquires.get(), s.renewals.get(), s.releases.get()
	acquires.done = func(store.Answer, error) {}
	renewals.done = func(store.Renewal, error) {}
	releases.done = func(store.ReleaseResult, error) {}
	for _, x := range []*operation{&acquires.operation, &renewals.operation, &releases.operation} {
		x.store, x.attempt = s, r.Attempt
		x.fingerprint.setBytes(r.Attempt.Fingerprint)
		x.result.setBytes(r.Record)
	}
	acquires.Free()
	renewals.Free()
	releases.Free()
	if acquires.done != nil || renewals.done != nil || releases.done != nil {
		t.Error("a caller is kept")
	}
	for i, x := range []*operation{&acquires.operation, &renewals.operation, &releases.operation} {
		if x.attempt != nil || x.fingerprint.buffer != nil || x.result.buffer != nil {
			t.Errorf("operation %d keeps %+v", i, x.details)
		}
	}
}
