package quorumstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/store"
)

// A gate refuses the requests to a server that is in quarantine. Without the gate each
// request would dial a connection that admit then refuses.
type gate struct {
	server
	membership *membership
	index      int
	work       *inflight.Counter
}

// closed reports whether the server is in quarantine. If so, closed calls refuse on another
// goroutine, because callers expect no answer before the method returns.
func (g *gate) closed(refuse func(fault error)) bool {
	err := g.membership.quarantined(g.index, time.Now())
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

// Vote requests the vote of the server, unless the server is in quarantine.
func (g *gate) Vote(r redisstore.VoteRequest, done func(store.Answer, error)) {
	if !g.closed(func(fault error) { done(store.Answer{}, fault) }) {
		g.server.Vote(r, done)
	}
}

// Renew renews the lease on the server, unless the server is in quarantine.
func (g *gate) Renew(r store.RenewRequest, done func(store.Renewal, error)) {
	if !g.closed(func(fault error) { done(store.Renewal{}, fault) }) {
		g.server.Renew(r, done)
	}
}

// Withdraw withdraws a vote of the server, unless the server is in quarantine.
func (g *gate) Withdraw(r redisstore.WithdrawRequest, done func(store.ReleaseResult, error)) {
	if !g.closed(func(fault error) { done(store.ReleaseResult{}, fault) }) {
		g.server.Withdraw(r, done)
	}
}
