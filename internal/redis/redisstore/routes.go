package redisstore

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
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

// routes leads each exchange to its lanes. In a cluster each master has lanes of
// its own, so that one that is slow or dead holds up nobody who waits for
// another. Lanes only say what leaves together: the client sends each command
// where its key is, also when that is another master by then.
type routes struct {
	lanes // of the only server; in a cluster, of keys whose master is not known

	rdb     redis.UniversalClient
	cluster clusterClient // nil where there is one server
	work    *inflight.Counter
	known   atomic.Bool // the client of the cluster knows which master has which slot

	replicas Replicas // who have to acknowledge what is granted

	mu      sync.Mutex
	masters map[string]*lanes // by address
	room    int               // for as many of them, until idle ones are forgotten
}

// leastRoom is how many masters of a cluster are remembered at least.
const leastRoom = 16

// open makes the routes those of a client.
func (r *routes) open(rdb redis.UniversalClient, work *inflight.Counter, replicas Replicas) {
	r.rdb, r.work, r.replicas = rdb, work, replicas
	r.cluster, _ = rdb.(clusterClient)
	r.masters, r.room = make(map[string]*lanes), leastRoom
	r.pave(&r.lanes)
}

// pave readies lanes for use.
func (r *routes) pave(l *lanes) {
	for _, l := range l.all() {
		l.rdb, l.leadable, l.width, l.work, l.routes = r.rdb, canLead(r.rdb), widthOf(width), r.work, r
	}
	if r.replicas.wanted() {
		for _, l := range [...]*lane{&l.takes, &l.begins, &l.finishes, &l.renews} {
			l.acknowledged, l.leadable = true, false
		}
	}
}

// renewsOf returns the lane of what renews keys.
func (r *routes) renewsOf(l *lanes) *lane {
	if r.replicas.wanted() {
		return &l.renews
	}
	return &l.keeps
}

// abortsOf returns the lane of what aborts attempts: nobody waits for replicas there.
func (r *routes) abortsOf(l *lanes) *lane {
	if r.replicas.wanted() {
		return &l.keeps
	}
	return &l.finishes
}

// lanesOf returns the lanes of the exchange's key.
func (r *routes) lanesOf(x *call) *lanes {
	if r.cluster == nil {
		return &r.lanes
	}
	master := r.masterOf(string(x.key))
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
func (r *routes) makeRoom() {
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
func (r *routes) masterOf(name string) *redis.Client {
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
func (r *routes) learn(first *batch) (asked bool, err error) {
	if r.cluster == nil || r.known.Load() {
		return false, nil
	}
	name := string(first.sends[0].of.key)
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
func (r *routes) doubt() {
	if r.cluster != nil && r.known.Load() {
		r.cluster.ReloadState(context.Background())
	}
}
