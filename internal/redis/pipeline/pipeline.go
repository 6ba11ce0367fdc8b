package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/topology"
	"github.com/reqlock/reqlock/internal/store"
)

// A Pipeline sends calls. It is safe for concurrent use.
//
// In a cluster each master has lanes of its own, so that a slow or dead master delays no
// call for another one. Lanes decide only which commands are sent together: the client
// sends each command to the master of its key, also if that has changed meanwhile.
type Pipeline struct {
	lanes // of the only server; in a cluster, of keys whose master is unknown

	rdb        redis.UniversalClient
	cluster    topology.Cluster // nil if there is one server
	work       *inflight.Counter
	slotsKnown atomic.Bool // the client of the cluster has loaded the slots
	joins      atomic.Bool // there is one server, which has refused no Joint
	replicas   command.Replicas
	width      int // of each lane

	begun        time.Time
	probeCommand func(key []byte) command.Command // nil unless Watch was called
	unserved     atomic.Int64                     // servers that have not served their last command
	reportOutage func(store.Outage)
	closed       atomic.Bool // no more probes

	mu         sync.Mutex
	masters    map[string]*lanes // by address
	maxMasters int               // when masters has as many, idle ones are removed
}

// minMasters is how many masters of a cluster a Pipeline remembers before it removes idle
// ones.
const minMasters = 16

// Width is how many commands a batch has at most, except in tests.
const Width = 128

// New returns a Pipeline that sends through rdb, at most width commands in a batch. It does no
// I/O. It counts its goroutines in work. If replicas are wanted, the calls of all classes except Release and Abort wait
// until the replicas have acknowledged them, or report too few in Reply.Unconfirmed.
func New(rdb redis.UniversalClient, work *inflight.Counter, replicas command.Replicas, width int) *Pipeline {
	p := &Pipeline{rdb: rdb, work: work, replicas: replicas, width: width, begun: time.Now(), reportOutage: func(store.Outage) {}}
	p.masters, p.maxMasters = make(map[string]*lanes), minMasters
	p.cluster, _ = rdb.(topology.Cluster)
	_, isServer := rdb.(topology.Server)
	p.joins.Store(isServer)
	p.init(&p.lanes)
	return p
}

// A Class is the purpose of a call. Calls of one class wait in one lane.
type Class int

// The classes of calls.
const (
	// Acquire is for calls that ask for keys.
	Acquire Class = iota
	// Renew is for calls that renew keys.
	Renew
	// Release is for calls that release keys, and for rare calls.
	Release
	// Begin is for calls that begin attempts.
	Begin
	// Commit is for calls that end attempts and store their records.
	Commit
	// Abort is for calls that end attempts without a record.
	Abort
)

// Do sends a call after its Begin. It may call the call's Operation before it returns.
func (p *Pipeline) Do(c *Call, class Class) { p.lanesOf(c).of(class, p.replicas.Wanted()).do(c) }

// lanes are the lanes to one server.
type lanes struct {
	// acquires sends what asks for keys, and releases what renews and releases them, so
	// that a release never waits for an acquisition. begins and commits are the same for
	// attempts, so that nothing else waits for their records.
	acquires, releases, begins, commits lane
	// renews sends renewals if replicas have to acknowledge them, so that a release never
	// waits for replicas. Otherwise it is not used.
	renews lane
	health health // of the server
}

func (l *lanes) all() [5]*lane {
	return [...]*lane{&l.acquires, &l.releases, &l.begins, &l.commits, &l.renews}
}

// of returns the lane of a class.
func (l *lanes) of(class Class, acknowledged bool) *lane {
	switch {
	case class == Acquire:
		return &l.acquires
	case class == Begin:
		return &l.begins
	case class == Commit, class == Abort && !acknowledged:
		return &l.commits
	case class == Renew && acknowledged:
		return &l.renews
	default:
		return &l.releases
	}
}

// idle reports whether the lanes have no call and no batch. The queue may still have sends of
// settled calls, which are never sent.
func (l *lanes) idle() bool {
	for _, l := range l.all() {
		l.mu.Lock()
		idle := l.inFlight == nil && len(l.calls) == 0
		l.mu.Unlock()
		if !idle {
			return false
		}
	}
	return true
}

// init makes lanes ready for use.
func (p *Pipeline) init(l *lanes) {
	l.health.pipeline, l.health.lane = p, &l.acquires
	l.health.server, _ = p.rdb.(topology.Server)
	l.health.outage.pipeline = p
	for _, one := range l.all() {
		one.rdb, one.canRunInline, one.width, one.work, one.pipeline = p.rdb, topology.CanRunInline(p.rdb), p.width, p.work, p
		one.health = &l.health
	}
	if p.replicas.Wanted() {
		for _, l := range [...]*lane{&l.acquires, &l.begins, &l.commits, &l.renews} {
			l.acknowledged, l.canRunInline = true, false
		}
	}
}

// lanesOf returns the lanes of the call's key.
func (p *Pipeline) lanesOf(c *Call) *lanes {
	if p.cluster == nil {
		return &p.lanes
	}
	master := p.masterOf(string(c.Key))
	if master == nil {
		return &p.lanes
	}
	address := master.Options().Addr
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.masters[address]
	if l == nil {
		p.evictIdle()
		l = &lanes{}
		p.init(l)
		l.health.server = master
		p.masters[address] = l
	}
	return l
}

// evictIdle removes the lanes of masters without calls, if there are many masters: most of
// those have left the cluster. A master that has not gets new lanes. The caller has locked
// mu.
func (p *Pipeline) evictIdle() {
	if len(p.masters) < p.maxMasters {
		return
	}
	for address, l := range p.masters {
		if l.idle() {
			delete(p.masters, address)
		}
	}
	p.maxMasters = max(minMasters, 2*len(p.masters))
}

// masterOf returns the client of the master that has the key, or nil while the slots are
// unknown. It does no I/O.
func (p *Pipeline) masterOf(name string) *redis.Client {
	if !p.slotsKnown.Load() {
		return nil
	}
	master, err := p.cluster.MasterForKey(context.Background(), name)
	if err != nil {
		return nil
	}
	return master
}

// loadSlots makes the client load the slots before the very first batch is sent, and
// reports whether it did. The client would do so anyhow; but calls that arrive meanwhile
// have to use the lanes of their own masters, however long the first batch takes.
func (p *Pipeline) loadSlots(first *batch) (loaded bool, err error) {
	if p.cluster == nil || p.slotsKnown.Load() {
		return false, nil
	}
	name := string(first.sends[0].call.Key)
	if _, err := p.cluster.MasterForKey(first.context(), name); err != nil {
		return true, err
	}
	p.slotsKnown.Store(true)
	return true, nil
}

// reloadSlots makes the client load the slots again, because a master does not answer. By
// itself the client does so once a minute, and after a redirection; a dead master sends no
// redirection. The client loads them in the background, at most every 200 ms.
func (p *Pipeline) reloadSlots() {
	if p.cluster != nil && p.slotsKnown.Load() {
		p.cluster.ReloadState(context.Background())
	}
}
