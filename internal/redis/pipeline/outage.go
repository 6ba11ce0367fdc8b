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

// outageQuiet is how long no call may fail before an outage is over. While a server recovers, calls
// fail between others that succeed. If an outage begins again within maxOutageQuiet after another
// one, its quiet time is twice as long, up to maxOutageQuiet, so that a server that fails now and
// then causes few reports.
const (
	outageQuiet    = time.Second
	maxOutageQuiet = time.Minute
)

// An outage is the time in which calls to a server fail for a reason that is none of the single
// call: see command.IsOutage. It begins with the first call that fails. A send that fails and
// succeeds when it is sent again is no outage. It ends with the first success after which no call
// fails for the quiet time. If the server has refused a part of the commands, as without memory,
// only a success on the same lane counts: the commands of other lanes go on.
type outage struct {
	pipeline *Pipeline
	counting atomic.Bool // there is an outage, or counts has callers

	mu      sync.Mutex
	since   time.Time          // zero if there is none
	served  time.Time          // the success that may end it; zero if there is none
	refused map[*lane]struct{} // the lanes whose last call was refused in part
	quiet   time.Duration      // of this outage, or of the last one
	ended   time.Time          // when the last one ended
	counts  store.Outage       // before the outage, the callers since the last success
}

// noteSettled notes the failure of a call. The callers have locked the lane.
func (l *lane) noteSettled(c *Call, r Reply) {
	why := r.Err
	if why == nil {
		why = r.Unconfirmed
	}
	if why != nil && command.IsOutage(why) {
		l.health.outage.fail(l, c.Begun, why, r.Unconfirmed != nil || command.IsPartial(why))
	}
}

// noteSuccess ends the outage soon if a command of the batch has succeeded.
func (l *lane) noteSuccess(b *batch, now time.Time) {
	if !l.health.outage.counting.Load() {
		return
	}
	for _, s := range b.sends {
		if (s.reply.Err == nil || !command.IsOutage(s.reply.Err)) && s.reply.Unconfirmed == nil {
			l.health.outage.succeed(l, now)
			return
		}
	}
}

// fail notes that a call has failed which began at a time. A call that began before the server
// recovered says nothing new.
func (o *outage) fail(l *lane, begun time.Time, why error, partial bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.since.IsZero():
		o.begin(begun, serverName(l.health.server, o.pipeline.rdb), why)
	case begun.After(o.served):
		o.served = time.Time{}
	default:
		return
	}
	if partial {
		o.refused[l] = struct{}{}
	}
}

// begin begins an outage. The caller has locked mu.
func (o *outage) begin(at time.Time, server string, why error) {
	if o.quiet == 0 || at.Sub(o.ended) > maxOutageQuiet {
		o.quiet = outageQuiet
	} else {
		o.quiet = min(2*o.quiet, maxOutageQuiet)
	}
	o.since, o.served, o.refused = at, time.Time{}, make(map[*lane]struct{})
	o.counts.Server, o.counts.Err = server, command.Sanitize(why)
	o.counting.Store(true)
	o.pipeline.reportOutage(o.counts)
}

// succeed notes that a command of the lane has succeeded.
func (o *outage) succeed(l *lane, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.refused, l)
	if o.since.IsZero() {
		o.counts = store.Outage{}
		o.counting.Store(false)
		return
	}
	if !o.served.IsZero() || len(o.refused) > 0 {
		return
	}
	o.served = now
	time.AfterFunc(o.quiet, func() { o.end(now) })
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
	o.since, o.ended = time.Time{}, time.Now()
	o.pipeline.reportOutage(o.counts)
	o.counts = store.Outage{}
	o.counting.Store(false)
}

// count changes the numbers of callers. It reports whether there is an outage. A caller may wait for
// less time than a command takes, and then the outage begins after it.
func (o *outage) count(refused, unlocked int) (isOpen bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counting.Store(true)
	o.counts.Refused += refused
	o.counts.Unlocked += unlocked
	return !o.since.IsZero()
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

// CountRefused counts a caller for the key that an outage has refused: see store.Store.
func (p *Pipeline) CountRefused(key []byte) (counted bool) { return p.countOutage(key, 1, 0) }

// CountUnlocked says that a counted caller runs without the lock: see store.Store.
func (p *Pipeline) CountUnlocked(key []byte) { p.countOutage(key, -1, 1) }

func (p *Pipeline) countOutage(key []byte, refused, unlocked int) (counted bool) {
	l := p.knownLanesOf(key)
	return l != nil && l.health.outage.count(refused, unlocked)
}
