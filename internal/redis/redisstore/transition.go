package redisstore

import (
	"sync"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
)

// Take sends SET NX, or SET NX GET if r.WithHolder is set or if no server has replied to that
// before. It runs take.lua instead of both if replicas have to acknowledge the grant. If the lock
// has the token of the request already, it is granted.
func (s *Store) Take(r store.TakeRequest, done func(store.Answer, error)) {
	t := s.acquires.get()
	t.init(s, t, r.Target, r.Inline, 0)
	t.withHolder = r.WithHolder
	if s.needsReplicas {
		t.encodeScript(&s.scripts.Take)
		t.encodeLease()
	} else {
		t.encodeTake()
	}
	t.done, t.decode = done, decodeTake
	s.pipeline.Do(&t.Call, pipeline.Acquire)
}

// Enqueue runs enqueue.lua, begin.lua for an attempt, sharedask.lua for a shared lease, or
// accept.lua for a ticket.
func (s *Store) Enqueue(r store.EnqueueRequest, done func(store.Answer, error)) {
	switch {
	case r.Attempt != nil:
		s.beginAttempt(&r, done)
		return
	case r.Ticket != "":
		s.accept(&r, done)
		return
	}
	t := s.acquires.get()
	t.init(s, t, r.Target, r.Inline, 0)
	t.fences = r.Fences
	if r.Limit.IsShared() {
		t.encodeScript(&s.scripts.SharedAsk)
		t.encodeKey(&t.queue, keyspace.QueueSuffix)
		t.encodeShared()
		if !r.Join && !r.WithHolder && r.Fences == 0 {
			t.brief = briefSharedTake
		}
	} else {
		t.encodeScript(&s.scripts.Enqueue)
		t.encodeKey(&t.queue, keyspace.QueueSuffix)
	}
	t.encodeFence()
	t.encodeQueue(r.Claim)
	join := joinOf(&r)
	t.encodeAsk(join)
	t.joinsFresh = join == joinsFresh
	t.done, t.decode = done, decodeEnqueue
	s.pipeline.Do(&t.Call, pipeline.Acquire)
}

// Renew runs renew.lua, or sharedrenew.lua for a shared lease.
func (s *Store) Renew(r store.RenewRequest, done func(store.Renewal, error)) {
	t := s.renewals.get()
	t.init(s, t, r.Target, false, 0)
	t.fences = r.Fences
	if r.Limit.IsShared() {
		t.encodeScript(&s.scripts.SharedRenew)
		t.encodeShared()
	} else {
		t.encodeScript(&s.scripts.Renew)
	}
	t.encodeKey(&t.queue, keyspace.QueueSuffix)
	if r.Attempt != nil {
		t.encodeKey(&t.record, keyspace.RecordSuffix)
	}
	t.encodeFence()
	t.encodeLease()
	t.args = append(t.args, r.Fences)
	if r.Attempt != nil {
		t.args = append(t.args, t.keep.setInt(r.Attempt.Keep.Milliseconds()))
	}
	t.done = done
	s.pipeline.Do(&t.Call, pipeline.Renew)
}

// Release runs release.lua, sharedrelease.lua for a shared lease, finish.lua for an attempt,
// keep.lua for a key that stays locked, or handover.lua for a key that a ticket gets.
func (s *Store) Release(r store.ReleaseRequest, done func(store.ReleaseResult, error)) {
	if r.Attempt != nil && r.Ending != store.NoEnding {
		s.finishAttempt(&r, done)
		return
	}
	t := s.releases.get()
	t.init(s, t, r.Target, r.Inline, 0)
	if r.Ticket != "" {
		s.handover(t, &r, done)
		return
	}
	if r.Keep > 0 {
		t.encodeScript(&s.scripts.Keep)
		t.args = append(t.args, t.token.setString(r.Token), t.ttl.setInt(r.Keep.Milliseconds()))
		t.done, t.decode = done, decodeKeep
		s.pipeline.Do(&t.Call, pipeline.Release)
		return
	}
	t.rejoin = r.Rejoin
	if r.Limit.IsShared() {
		t.encodeScript(&s.scripts.SharedRelease)
		t.encodeKey(&t.queue, keyspace.QueueSuffix)
		t.encodeShared()
		t.brief = briefSharedRelease
	} else {
		t.encodeScript(&s.scripts.Release)
		t.encodeKey(&t.queue, keyspace.QueueSuffix)
		t.brief = briefRelease
	}
	if !r.NoWaiters || r.Rejoin != "" {
		t.brief = 0
	}
	t.encodeQueue(r.Claim)
	t.args = append(t.args, t.rejoinToken.setString(r.Rejoin))
	if r.Apart {
		t.args = append(t.args, 1)
	}
	t.done, t.decode = done, decodeRelease
	s.pipeline.Do(&t.Call, pipeline.Release)
}

// pool keeps finished operations for reuse, because of their memory.
type pool[T any] struct{ free sync.Pool }

func (p *pool[T]) get() *T {
	if t, ok := p.free.Get().(*T); ok {
		return t
	}
	return new(T)
}

// acquireOp is a Take, an Enqueue or a Vote.
type acquireOp struct {
	operation
	done   func(store.Answer, error)
	decode func(got pipeline.Reply, x *operation) (store.Answer, error)
}

// Settle delivers the answer. A grant that too few replicas have acknowledged is a fault.
func (t *acquireOp) Settle(got pipeline.Reply, uncertain bool) {
	answer, err := t.decode(got, &t.operation)
	switch {
	case err != nil:
		t.done(store.Answer{}, command.NewFault(err, uncertain))
		return
	case answer.Granted && got.Unconfirmed != nil:
		t.done(store.Answer{}, command.NewFault(got.Unconfirmed, true))
		return
	}
	answer.SentTwice = uncertain
	t.done(answer, nil)
}

// Late reports a grant that arrives after its request has failed.
func (t *acquireOp) Late(got pipeline.Reply) {
	if answer, err := t.decode(got, &t.operation); err == nil && answer.Granted {
		t.store.lateGrant(t.target.Key, t.target.Token)
	}
}

// Free puts the operation back into its pool.
func (t *acquireOp) Free() {
	t.clear()
	t.done = nil
	t.store.acquires.free.Put(t)
}

// renewOp is a Renew.
type renewOp struct {
	operation
	done func(store.Renewal, error)
}

// Settle delivers the renewal. One that too few replicas have acknowledged is a fault.
func (t *renewOp) Settle(got pipeline.Reply, uncertain bool) {
	renewal, err := decodeRenew(got, &t.operation)
	switch {
	case err != nil:
		t.done(store.Renewal{}, command.NewFault(err, uncertain))
		return
	case renewal.Held && got.Unconfirmed != nil:
		t.done(store.Renewal{}, command.NewFault(got.Unconfirmed, true))
		return
	}
	t.done(renewal, nil)
}

// Late does nothing: the lease may have ended since.
func (t *renewOp) Late(pipeline.Reply) {}

// Free puts the operation back into its pool.
func (t *renewOp) Free() {
	t.clear()
	t.done = nil
	t.store.renewals.free.Put(t)
}

// releaseOp is a Release or a Withdraw.
type releaseOp struct {
	operation
	done   func(store.ReleaseResult, error)
	decode func(got pipeline.Reply, x *operation) (store.ReleaseResult, error)
}

// Settle delivers the result. If the second send does not find the token of the request, the
// first send may have released the lock: the status is Unsure. It is Unsure also if the
// lock is kept and replicas have to acknowledge it, because releases do not wait for replicas:
// the token that rejoined has to ask again. A commit or a done that too few replicas have
// acknowledged is a fault.
func (t *releaseOp) Settle(got pipeline.Reply, uncertain bool) {
	released, err := t.decode(got, &t.operation)
	switch {
	case err != nil:
		t.done(store.ReleaseResult{}, command.NewFault(err, uncertain))
		return
	case t.toTicket: // a send that finds neither token is the last one that could
		if got.Unconfirmed != nil && released.Status == store.Freed {
			t.done(store.ReleaseResult{}, command.NewFault(got.Unconfirmed, true))
			return
		}
	case released.Status == store.NotHeld && uncertain, released.Status == store.Kept && t.store.needsReplicas:
		released.Status = store.Unsure
	}
	if got.Unconfirmed != nil && released.Record != store.NotStored {
		t.done(store.ReleaseResult{}, command.NewFault(got.Unconfirmed, true))
		return
	}
	t.done(released, nil)
}

// Late reports a lock that is kept for a token after its request has failed.
func (t *releaseOp) Late(got pipeline.Reply) {
	if released, err := t.decode(got, &t.operation); err == nil && released.Status == store.Kept {
		t.store.lateGrant(t.target.Key, t.rejoin)
	}
}

// Free puts the operation back into its pool.
func (t *releaseOp) Free() {
	t.clear()
	t.done = nil
	t.store.releases.free.Put(t)
}
