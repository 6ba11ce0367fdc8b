package quorumstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A fake is a server. The test gives its replies.
type fake struct {
	votes       []pendingCall[store.Answer]
	renewals    []pendingCall[store.Renewal]
	withdrawals []pendingCall[store.ReleaseResult]
	woken       []bool // by withdrawal, whether the server must notify a waiter
	brief       []bool // by vote
	hint        func(key, token string)
	late        func(key, token string)
	ready       chan struct{}
	stopped     int
	closing     error // the result of Close
	watched     bool
	unserved    time.Time // the result of Unserved, with errTemporary

	mu sync.Mutex // guards withdrawals, because timers call Withdraw
}

// allWithdrawals returns the withdrawals that the server has received so far.
func (f *fake) allWithdrawals() []pendingCall[store.ReleaseResult] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.withdrawals)
}

// A pendingCall is a request to a fake, and the function that receives the reply.
type pendingCall[A any] struct {
	request storetest.AnyRequest
	answer  func(A, error)
}

func (f *fake) Vote(r redisstore.VoteRequest, done func(store.Answer, error)) {
	f.votes, f.brief = append(f.votes, pendingCall[store.Answer]{ofVote(r), done}), append(f.brief, r.Brief)
}

func (f *fake) Renew(r store.RenewRequest, done func(store.Renewal, error)) {
	f.renewals = append(f.renewals, pendingCall[store.Renewal]{storetest.OfRenew(r), done})
}

func (f *fake) Withdraw(r redisstore.WithdrawRequest, done func(store.ReleaseResult, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.withdrawals = append(f.withdrawals, pendingCall[store.ReleaseResult]{ofWithdrawal(r), done})
	f.woken = append(f.woken, r.Wake)
}

// ofVote converts the request of a Vote.
func ofVote(r redisstore.VoteRequest) storetest.AnyRequest {
	return storetest.AnyRequest{
		Key: r.Key, Token: r.Token, TTL: r.TTL, Bound: r.Bound, Claim: r.Claim, Join: r.Join, Waiter: r.Waiter,
	}
}

// ofWithdrawal converts the request of a Withdraw.
func ofWithdrawal(r redisstore.WithdrawRequest) storetest.AnyRequest {
	return storetest.AnyRequest{
		Key: r.Key, Token: r.Token, TTL: r.TTL, Bound: r.Bound, Claim: r.Claim, Waiter: r.Waiter, Rejoin: r.Rejoin,
	}
}

// voteOf converts a request for Vote.
func voteOf(r storetest.AnyRequest) redisstore.VoteRequest {
	return redisstore.VoteRequest{Target: r.Target(), Claim: r.Claim, Join: r.Join, Waiter: r.Waiter}
}

// withdrawalOf converts a request for Withdraw.
func withdrawalOf(r storetest.AnyRequest) redisstore.WithdrawRequest {
	return redisstore.WithdrawRequest{Target: r.Target(), Claim: r.Claim, Waiter: r.Waiter, Rejoin: r.Rejoin}
}

func (f *fake) Listen(string) (<-chan struct{}, func()) { return f.ready, func() { f.stopped++ } }

func (f *fake) OnHint(hint func(key, token string)) { f.hint = hint }

func (f *fake) OnLateGrant(late func(key, token string)) { f.late = late }

func (f *fake) OnWarning(func(error)) {}

func (f *fake) NameSubscription(string) {}

func (f *fake) OnOutage(func(store.Outage)) {}

func (f *fake) CountRefused(string) bool { return false }

func (f *fake) CountUnlocked(string) {}

func (f *fake) Watch() { f.watched = true }

func (f *fake) Unserved(string) (time.Time, error) {
	if f.unserved.IsZero() {
		return time.Time{}, nil
	}
	return f.unserved, errTemporary
}

func (f *fake) Close(context.Context) error { return f.closing }

// newStore returns a Store on n fakes. All of them are identified.
func newStore(n int) (*Store, []*fake) {
	s := &Store{membership: newMembership(n, time.Second), majority: n/2 + 1, ballots: make(map[ballotID]*ballot)}
	s.hints = hintQuorum{majority: s.majority, work: &s.work, deliver: func(string, string) {}}
	var fakes []*fake
	for i := range n {
		f := &fake{ready: make(chan struct{})}
		s.addServer(f)
		fakes = append(fakes, f)
		_, _, _ = s.membership.connected(i, fmt.Sprint("run ", i))
	}
	return s, fakes
}

// bubble runs a subtest in a bubble of synctest. A timer fires only while the subtest
// sleeps.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

// request returns the request of a ballot. Its waiter may join the queue.
func request() storetest.AnyRequest {
	return storetest.AnyRequest{Key: "k", Token: "ballot", Waiter: "waiter", Join: true, TTL: time.Second, Bound: 100 * time.Millisecond}
}

// An outcome counts the calls of done, and has the arguments of the last one.
type outcome[A any] struct {
	times  int
	answer A
	err    error
}

func (o *outcome[A]) take(answer A, err error) {
	o.times++
	o.answer, o.err = answer, err
}

var (
	errTemporary = &store.Fault{Unknown: true, Temporary: true, Err: errors.New("no reply")}
	errPermanent = &store.Fault{Err: errors.New("no right")}
	sent         = time.Now()
)

// granted returns a vote for the ballot.
func granted(since time.Time) vote {
	return vote{answer: store.Answer{Granted: true, Since: since}}
}

// refused returns a vote for another holder.
func refused(holder string, remaining time.Duration) vote {
	return vote{answer: store.Answer{Holder: holder, Remaining: remaining}}
}

// failed returns a failure instead of a vote.
func failed(err error) vote { return vote{err: err} }

// reply makes the first servers reply, in their order.
func reply(fakes []*fake, votes ...vote) {
	for i, v := range votes {
		fakes[i].votes[0].answer(v.answer, v.err)
	}
}

// leaseOfTwo returns a store that has a lease by the votes of two of its three servers. The last one has not answered.
func leaseOfTwo() (*Store, []*fake) {
	s, fakes := newStore(3)
	s.Enqueue(request().Enqueue(), func(store.Answer, error) {})
	reply(fakes, granted(sent), granted(sent))
	return s, fakes
}

// withdrawn returns how many withdrawals each server has received.
func withdrawn(fakes []*fake) (counts []int) {
	for _, f := range fakes {
		counts = append(counts, len(f.withdrawals))
	}
	return counts
}
