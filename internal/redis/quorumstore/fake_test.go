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

// A fake is a server whose answers the test gives.
type fake struct {
	votes       []asked[store.Answer]
	renewals    []asked[store.Renewal]
	withdrawals []asked[store.ReleaseResult]
	woken       []bool // by withdrawal, whether somebody is to be woken
	hint        func(key, token string)
	late        func(key, token string)
	ready       chan struct{}
	stopped     int

	mu sync.Mutex // guards withdrawals, for those that come from a timer
}

// taken returns the withdrawals.
func (f *fake) taken() []asked[store.ReleaseResult] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.withdrawals)
}

// asked is one command, and the function that takes its answer.
type asked[A any] struct {
	request storetest.AnyRequest
	answer  func(A, error)
}

func (f *fake) Vote(r redisstore.VoteRequest, done func(store.Answer, error)) {
	f.votes = append(f.votes, asked[store.Answer]{ofVote(r), done})
}

func (f *fake) Renew(r store.RenewRequest, done func(store.Renewal, error)) {
	f.renewals = append(f.renewals, asked[store.Renewal]{storetest.OfRenew(r), done})
}

func (f *fake) Withdraw(r redisstore.WithdrawRequest, done func(store.ReleaseResult, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.withdrawals = append(f.withdrawals, asked[store.ReleaseResult]{ofWithdrawal(r), done})
	f.woken = append(f.woken, r.Wake)
}

// ofVote returns a Vote as an AnyRequest.
func ofVote(r redisstore.VoteRequest) storetest.AnyRequest {
	return storetest.AnyRequest{
		Key: r.Key, Token: r.Token, TTL: r.TTL, Bound: r.Bound, Claim: r.Claim, Join: r.Join, Waiter: r.Waiter,
	}
}

// ofWithdrawal returns a Withdraw as an AnyRequest.
func ofWithdrawal(r redisstore.WithdrawRequest) storetest.AnyRequest {
	return storetest.AnyRequest{
		Key: r.Key, Token: r.Token, TTL: r.TTL, Bound: r.Bound, Claim: r.Claim, Waiter: r.Waiter, Rejoin: r.Rejoin,
	}
}

// voteOf returns a request as a Vote.
func voteOf(r storetest.AnyRequest) redisstore.VoteRequest {
	return redisstore.VoteRequest{Target: r.Target(), Claim: r.Claim, Join: r.Join, Waiter: r.Waiter}
}

// withdrawalOf returns a request as a Withdraw.
func withdrawalOf(r storetest.AnyRequest) redisstore.WithdrawRequest {
	return redisstore.WithdrawRequest{Target: r.Target(), Claim: r.Claim, Waiter: r.Waiter, Rejoin: r.Rejoin}
}

func (f *fake) Listen(string) (<-chan struct{}, func()) { return f.ready, func() { f.stopped++ } }

func (f *fake) OnHint(hint func(key, token string)) { f.hint = hint }

func (f *fake) OnLateGrant(late func(key, token string)) { f.late = late }

func (f *fake) Close(context.Context) error { return nil }

// newStore returns a Store on so many fakes that were all met before.
func newStore(n int) (*Store, []*fake) {
	s := &Store{muster: newMuster(n, time.Second), majority: n/2 + 1, ballots: make(map[ballotID]*ballot)}
	s.echoes = echoes{majority: s.majority, work: &s.work, tell: func(string, string) {}}
	var fakes []*fake
	for i := range n {
		f := &fake{ready: make(chan struct{})}
		s.join(f)
		fakes = append(fakes, f)
		_, _, _ = s.muster.connected(i, fmt.Sprint("run ", i))
	}
	return s, fakes
}

// bubble runs a part of a test in a bubble, where no timer runs before all is done that
// the test does without sleeping.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// request is that of a ballot of a waiter who may join the line.
func request() storetest.AnyRequest {
	return storetest.AnyRequest{Key: "k", Token: "ballot", Waiter: "waiter", Join: true, TTL: time.Second, Bound: 100 * time.Millisecond}
}

// outcome is what a caller was told, if it was.
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
	errPasses = &store.Fault{Unknown: true, Temporary: true, Err: errors.New("no reply")}
	errStays  = &store.Fault{Err: errors.New("no right")}
	sent      = time.Now()
)

// granted, refused and failed are the answers of one server.
func granted(since time.Time) vote {
	return vote{answer: store.Answer{Granted: true, Since: since}}
}

func refused(holder string, remaining time.Duration) vote {
	return vote{answer: store.Answer{Holder: holder, Remaining: remaining}}
}

func failed(err error) vote { return vote{err: err} }

// vote gives the answers of the first servers, in their order.
func give(fakes []*fake, votes ...vote) {
	for i, v := range votes {
		fakes[i].votes[0].answer(v.answer, v.err)
	}
}

// withdrawn returns how many withdrawals each server was sent.
func withdrawn(fakes []*fake) (counts []int) {
	for _, f := range fakes {
		counts = append(counts, len(f.withdrawals))
	}
	return counts
}
