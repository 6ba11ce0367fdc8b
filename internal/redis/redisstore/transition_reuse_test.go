package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Operations are reused. The arguments and the reply of one request must never appear in
// another request.
func TestReusedOperationsDoNotMix(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t, storetest.Deadlines)
	s := newStore(t, rdb)
	const workers = 32
	rounds := suite.Size(15, 60)
	// An inline take whose reply takes longer than store.InlineTime is resent. On a busy machine a
	// copy may arrive after the release, so each round has a key of its own.
	var resent sync.Map // by key: the token that may lock it once more
	isLeft := func(key string) bool {
		value := rdb.Get(t.Context(), key).Val()
		mayBe, _ := resent.Load(key)
		return value != "" && value != mayBe
	}
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := range rounds {
				limit, isShared := store.Exclusive, i%6 == 5
				if isShared {
					limit = store.Unlimited
				}
				r := storetest.Request(store.NewToken(storetest.Me, limit, uint64(w*rounds+i+1)))
				r.Limit = limit
				r.Key, r.Inline, r.NoWaiters = fmt.Sprint("key", w, "-", i), i%2 == 0, i%3 == 0
				if r.Inline {
					resent.Store("p:"+r.Key, r.Token)
				}
				r.TTL += time.Duration(w) * time.Minute
				r.Bound = storetest.LongBound
				do := s.Take
				if isShared {
					do = s.Enqueue
				}
				if i%5 == 0 {
					do, r.Fences = s.Enqueue, i%10
				}
				if i%4 == 0 {
					do, r.Attempt = s.Enqueue, attemptOf(w, i)
				}
				got, err := do(t.Context(), r)
				if err != nil || !got.Granted || (got.Fence > 0) != (r.Fences > 0) || (got.Number == 1) != (r.Attempt != nil) {
					t.Errorf("%+v, %v", got, err)
				}
				if i%7 == 0 {
					value, left := rdb.Get(t.Context(), "p:"+r.Key).Val(), rdb.PTTL(t.Context(), "p:"+r.Key).Val()
					isHeld := value == r.Token || isShared && strings.HasPrefix(value, markerPrefix)
					if !isHeld || !storetest.IsTTL(left, r.TTL) {
						t.Errorf("%s: %q for %v, want %q for %v", r.Key, value, left, r.Token, r.TTL)
					}
				}
				if renewal, err := s.Renew(t.Context(), r); err != nil || !renewal.Held {
					t.Errorf("renew: %+v, %v", renewal, err)
				}
				r.Ending, r.Record = store.EndCommit, fmt.Append(nil, "answer ", w, i)
				released, err := s.Release(t.Context(), r)
				if err != nil || !isFreed(released.Status, r.Inline) || isLeft("p:"+r.Key) {
					t.Errorf("release: %+v, %v", released, err)
				}
				if r.Attempt != nil {
					if got, err := s.Enqueue(t.Context(), r); err != nil || string(got.Record) != string(r.Record) {
						t.Errorf("done with %q: %+v, %v", r.Record, got, err)
					}
					rdb.Del(t.Context(), "{p:"+r.Key+"}:r")
				}
			}
		})
	}
	group.Wait()
	left := rdb.Keys(t.Context(), "p:*").Val()
	if slices.ContainsFunc(left, func(key string) bool { return key[:len(storetest.LockName)-1] == "p:k" && isLeft(key) }) {
		t.Errorf("keys are left: %q", left)
	}
}

// isFreed reports whether a release of a key without waiters may have this status. An inline
// release is resent if its reply takes longer than store.InlineTime, as on a busy machine. The
// second send finds no key then, because the first one has freed it.
func isFreed(status store.ReleaseStatus, inline bool) bool {
	return status == store.Freed || inline && status == store.Unsure
}

// attemptOf returns an attempt with a fingerprint of its own.
func attemptOf(worker, round int) *store.Attempt {
	return &store.Attempt{Fingerprint: fmt.Append(nil, worker, round), Keep: storetest.Keep}
}

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
