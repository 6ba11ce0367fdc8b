package pipeline

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/topology"
	"github.com/reqlock/reqlock/internal/store"
)

// outageQuiet is how long no call may fail before an outage is over. While a server recovers, and
// while it accepts some commands only, calls fail between others that succeed.
const outageQuiet = time.Second

// An outage is the time in which calls to a server fail for a reason that is none of the single
// call: see command.IsOutage. It begins with the first call that fails. A send that fails and
// succeeds when it is sent again is no outage. It ends with the first success after which no call
// fails for outageQuiet.
type outage struct {
	pipeline *Pipeline
	open     atomic.Bool // since is set

	mu     sync.Mutex
	server string    // named when the outage began
	since  time.Time // zero if there is none
	served time.Time // the first success since the last failure; zero if there is none
	counts store.Outage
}

// noteSettled notes the failure of a call. The callers have locked the lane.
func (l *lane) noteSettled(c *Call, r Reply) {
	why := r.Err
	if why == nil {
		why = r.Unconfirmed
	}
	if why != nil && command.IsOutage(why) {
		l.health.outage.fail(c.Begun, why, l.health.server)
	}
}

// noteSuccess ends the outage soon if a command of the batch has succeeded.
func (l *lane) noteSuccess(b *batch, now time.Time) {
	if !l.health.outage.open.Load() {
		return
	}
	for _, s := range b.sends {
		if (s.reply.Err == nil || !command.IsOutage(s.reply.Err)) && s.reply.Unconfirmed == nil {
			l.health.outage.succeed(now)
			return
		}
	}
}

// fail notes that a call has failed which began at a time. A call that began before the server
// recovered says nothing new.
func (o *outage) fail(begun time.Time, why error, server topology.Server) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.since.IsZero():
		o.server, o.since, o.served = serverName(server, o.pipeline.rdb), begun, time.Time{}
		o.counts = store.Outage{Server: o.server, Err: command.Sanitize(why)}
		o.open.Store(true)
		o.pipeline.reportOutage(o.counts)
	case begun.After(o.served):
		o.served = time.Time{}
	}
}

// succeed notes that a command has succeeded.
func (o *outage) succeed(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() || !o.served.IsZero() {
		return
	}
	o.served = now
	time.AfterFunc(outageQuiet, func() { o.end(now) })
}

// end ends the outage if no call has failed since the success at this time.
func (o *outage) end(served time.Time) {
	o.pipeline.work.Add()
	defer o.pipeline.work.Done()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() || !o.served.Equal(served) || o.pipeline.closed.Load() {
		return
	}
	o.counts.Lasted = max(served.Sub(o.since), 1) // 0 would be one that lasts
	o.since = time.Time{}
	o.open.Store(false)
	o.pipeline.reportOutage(o.counts)
}

// count counts a caller that was refused because of the outage, if there is one.
func (o *outage) count(runsUnlocked bool) {
	if !o.open.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if runsUnlocked {
		o.counts.Unlocked++
	} else {
		o.counts.Refused++
	}
}

// serverName returns what an operator calls a server: its address, or what the client leads to
// if that decides the address.
func serverName(server topology.Server, rdb redis.UniversalClient) string {
	if server == nil {
		if _, isCluster := rdb.(topology.Cluster); isCluster {
			return "the cluster"
		}
		return "redis"
	}
	if addr := server.Options().Addr; addr != sentinelAddr {
		return addr
	}
	return "the master of Sentinel"
}

// sentinelAddr is the address in the options of a client that redis.NewFailoverClient has made.
const sentinelAddr = "FailoverClient"

// OnOutage registers the one function that is called when an outage of a server begins, and when
// it ends. It is called with locks held, so it must not block, nor send anything. Call it before
// the first call of Do.
func (p *Pipeline) OnOutage(report func(store.Outage)) { p.reportOutage = report }

// CountRefused counts a caller that the failure of a call for the key has refused: see store.Store.
func (p *Pipeline) CountRefused(key []byte, runsUnlocked bool) {
	if l := p.knownLanesOf(key); l != nil {
		l.health.outage.count(runsUnlocked)
	}
}
