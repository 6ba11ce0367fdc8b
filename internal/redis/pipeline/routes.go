package pipeline

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// lanes are those that lead to one server.
type lanes struct {
	// takes is the lane of what asks for keys, keeps that of what renews and
	// releases them, which is never stuck behind the others. begins and finishes
	// are the same for attempts: behind their records nothing else is stuck.
	takes, keeps, begins, finishes lane
	// renews is the lane of what renews keys where replicas have to acknowledge
	// that, so that no release is stuck behind it. Otherwise it is not used.
	renews lane
}

func (l *lanes) all() [5]*lane {
	return [...]*lane{&l.takes, &l.keeps, &l.begins, &l.finishes, &l.renews}
}

// idle reports whether nothing is under way.
func (l *lanes) idle() bool {
	for _, l := range l.all() {
		l.mu.Lock()
		idle := l.flight == nil && len(l.queue) == 0 && len(l.exchanges) == 0
		l.mu.Unlock()
		if !idle {
			return false
		}
	}
	return true
}

// Pipeline leads each exchange to its lanes. In a cluster each master has lanes of
// its own, so that one that is slow or dead holds up nobody who waits for
// another. Lanes only say what leaves together: the client sends each command
// where its key is, also when that is another master by then.
type Pipeline struct {
	lanes // of the only server; in a cluster, of keys whose master is not known

	rdb     redis.UniversalClient
	cluster topology.Cluster // nil where there is one server
	work    *inflight.Counter
	known   atomic.Bool // the client of the cluster knows which master has which slot

	replicas command.Replicas // who have to acknowledge what is granted

	mu      sync.Mutex
	masters map[string]*lanes // by address
	room    int               // for as many of them, until idle ones are forgotten
}

// leastRoom is how many masters of a cluster are remembered at least.
const leastRoom = 16

// New returns a Pipeline that sends through rdb. It does no I/O. Each goroutine of it
// counts in work. What acquires, renews and commits counts once the replicas have it.
func New(rdb redis.UniversalClient, work *inflight.Counter, replicas command.Replicas) *Pipeline {
	p := &Pipeline{rdb: rdb, work: work, replicas: replicas, masters: make(map[string]*lanes), room: leastRoom}
	p.cluster, _ = rdb.(topology.Cluster)
	p.pave(&p.lanes)
	return p
}

// pave readies lanes for use.
func (r *Pipeline) pave(l *lanes) {
	for _, l := range l.all() {
		l.rdb, l.leadable, l.width, l.work, l.routes = r.rdb, topology.CanRunInline(r.rdb), widthOf(width), r.work, r
	}
	if r.replicas.Wanted() {
		for _, l := range [...]*lane{&l.takes, &l.begins, &l.finishes, &l.renews} {
			l.acknowledged, l.leadable = true, false
		}
	}
}

// A Class is what a call is for. Calls of one class wait in one lane.
type Class int

// The classes of calls.
const (
	// Acquire is for calls that ask for keys.
	Acquire Class = iota
	// Renew is for calls that renew keys.
	Renew
	// Release is for calls that release keys, and for rare ones.
	Release
	// Begin is for calls that begin attempts.
	Begin
	// Commit is for calls that end attempts and keep their records, which may be big.
	Commit
	// Abort is for calls that end attempts without a record. They wait for no replicas.
	Abort
)

// Do sends a call that has begun. Its Operation is told of the end, on any goroutine,
// also on that of the caller.
func (r *Pipeline) Do(x *Call, class Class) { r.lanesOf(x).of(class, r.replicas.Wanted()).do(x) }

// of returns the lane of a class.
func (l *lanes) of(class Class, acknowledged bool) *lane {
	switch {
	case class == Acquire:
		return &l.takes
	case class == Begin:
		return &l.begins
	case class == Commit, class == Abort && !acknowledged:
		return &l.finishes
	case class == Renew && acknowledged:
		return &l.renews
	default:
		return &l.keeps
	}
}

// lanesOf returns the lanes of the exchange's key.
func (r *Pipeline) lanesOf(x *Call) *lanes {
	if r.cluster == nil {
		return &r.lanes
	}
	master := r.masterOf(string(x.Key))
	if master == nil {
		return &r.lanes
	}
	address := master.Options().Addr
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.masters[address]
	if l == nil {
		r.makeRoom()
		l = &lanes{}
		r.pave(l)
		r.masters[address] = l
	}
	return l
}

// makeRoom forgets masters for which there is nothing to do, once there are many:
// most of them are gone. One that is not gets lanes anew.
func (r *Pipeline) makeRoom() {
	if len(r.masters) < r.room {
		return
	}
	for address, l := range r.masters {
		if l.idle() {
			delete(r.masters, address)
		}
	}
	r.room = max(leastRoom, 2*len(r.masters))
}

// masterOf returns the client of the master that has the key, or nil while that
// is not known. It asks nobody, and never waits.
func (r *Pipeline) masterOf(name string) *redis.Client {
	if !r.known.Load() {
		return nil
	}
	master, err := r.cluster.MasterForKey(context.Background(), name)
	if err != nil {
		return nil
	}
	return master
}

// learn makes the client ask where the slots are before the first batch of all is
// sent, and reports whether it did. The client would ask then anyhow; but those who
// come meanwhile have to leave on the lanes of their own masters, however long that
// batch waits for its one.
func (r *Pipeline) learn(first *batch) (asked bool, err error) {
	if r.cluster == nil || r.known.Load() {
		return false, nil
	}
	name := string(first.sends[0].of.Key)
	if _, err := r.cluster.MasterForKey(first.context(), name); err != nil {
		return true, err
	}
	r.known.Store(true)
	return true, nil
}

// doubt makes the client ask where the slots are, since a master does not
// answer. By itself it does so once a minute, and when a node sends it away;
// one that is dead sends nobody away. It asks in the background, and not more often
// than every 200 ms. While the slots are not known, the next batch asks for them.
func (r *Pipeline) doubt() {
	if r.cluster != nil && r.known.Load() {
		r.cluster.ReloadState(context.Background())
	}
}
