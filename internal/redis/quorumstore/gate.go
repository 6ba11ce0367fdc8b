package quorumstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/store"
)

// A gate stands before a server that gives no votes yet. What is asked of it is
// refused here: it would be a connection for each command, made in vain.
type gate struct {
	server
	muster *muster
	index  int
	work   *inflight.Counter
}

// closed reports whether the server is known not to vote, and then has refuse told of
// it. It does not call refuse itself: nobody expects an answer before a method returns.
func (g *gate) closed(refuse func(fault error)) bool {
	err := g.muster.waits(g.index, time.Now())
	if err == nil {
		return false
	}
	g.work.Add()
	go func() {
		defer g.work.Done()
		refuse(&store.Fault{Temporary: true, Err: err})
	}()
	return true
}

// Vote asks the server, if it votes.
func (g *gate) Vote(r redisstore.VoteRequest, done func(store.Answer, error)) {
	if !g.closed(func(fault error) { done(store.Answer{}, fault) }) {
		g.server.Vote(r, done)
	}
}

// Renew asks the server, if it votes.
func (g *gate) Renew(r store.RenewRequest, done func(store.Renewal, error)) {
	if !g.closed(func(fault error) { done(store.Renewal{}, fault) }) {
		g.server.Renew(r, done)
	}
}

// Withdraw tells the server, if it votes.
func (g *gate) Withdraw(r redisstore.WithdrawRequest, done func(store.ReleaseResult, error)) {
	if !g.closed(func(fault error) { done(store.ReleaseResult{}, fault) }) {
		g.server.Withdraw(r, done)
	}
}
