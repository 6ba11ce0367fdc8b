package engine

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// votingStore is a store that votes. The test sets the result of each ballot.
type votingStore struct {
	store.Store // nil: the tests use no attempts
	vote        func(n int, r storetest.AnyRequest) (store.Answer, error)
	hint        func(key, token string)
	losing      bool // renewals find no majority

	mu       sync.Mutex
	asked    []storetest.AnyRequest
	times    []time.Time
	released []storetest.AnyRequest
}

func (v *votingStore) Enqueue(r store.EnqueueRequest, done func(store.Answer, error)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n, got := len(v.asked), storetest.OfEnqueue(r)
	v.asked, v.times = append(v.asked, got), append(v.times, time.Now())
	go func() { done(v.vote(n, got)) }()
}

func (v *votingStore) Renew(_ store.RenewRequest, done func(store.Renewal, error)) {
	go done(store.Renewal{Held: !v.losing, Since: time.Now()}, nil)
}

func (v *votingStore) Release(r store.ReleaseRequest, done func(store.ReleaseResult, error)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.released = append(v.released, storetest.OfRelease(r))
	go done(store.ReleaseResult{Status: store.Freed}, nil)
}

func (v *votingStore) Listen(string) (<-chan struct{}, func()) {
	ready := make(chan struct{})
	close(ready)
	return ready, func() {}
}

func (v *votingStore) OnHint(hint func(key, token string)) { v.hint = hint }

func (v *votingStore) OnLateGrant(func(key, token string)) {}

func (v *votingStore) OnWarning(func(error)) {}

func (v *votingStore) OnOutage(func(store.Outage)) {}

func (v *votingStore) CountRefused(string) bool { return false }

func (v *votingStore) CountUnlocked(string) {}

func (v *votingStore) Watch() {}

func (v *votingStore) Close(context.Context) error { return nil }

// tokens returns the tokens that were released.
func (v *votingStore) tokens() (tokens []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range v.released {
		tokens = append(tokens, r.Token)
	}
	return tokens
}

// questions returns the requests for the key.
func (v *votingStore) questions() []storetest.AnyRequest {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.asked)
}

// newVotingEngine returns an engine on a store with this vote.
func newVotingEngine(t *testing.T, vote func(n int, r storetest.AnyRequest) (store.Answer, error)) (*Engine, *votingStore, *recorder) {
	v, r := &votingStore{vote: vote}, &recorder{}
	e := New(v, Config{
		Process: "me", Bound: bound, MaxTotalWaiters: 10, Ballots: true,
		Hooks: Hooks{Observe: r.observe, Cause: func(l Loss) error { return lossError{l} }},
	})
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e, v, r
}

var (
	splitAnswer = store.Answer{Holder: "someone", Remaining: time.Minute, SplitVote: true}
	heldAnswer  = store.Answer{Holder: "someone", Remaining: time.Minute}
)

func grantedAnswer() store.Answer { return store.Answer{Granted: true, Since: time.Now()} }
