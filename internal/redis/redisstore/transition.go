package redisstore

import (
	"sync"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
)

// Take sends SET NX, with GET where r.WithHolder is set, or the stand-in of that on
// servers before Redis 7. Our own token in the key means held.
// Where replicas have to acknowledge a grant it is the stand-in that is sent.
func (s *Store) Take(r store.TakeRequest, done func(store.Answer, error)) {
	t := s.asks.get()
	t.begin(s, t, r.Target, r.Inline, 0)
	t.withHolder = r.WithHolder
	if s.acknowledged {
		t.sayScript(&s.scripts.Take)
		t.sayLease()
	} else {
		t.sayTake()
	}
	t.done, t.decode = done, decodeTake
	s.pipeline.Do(&t.Call, pipeline.Acquire)
}

// Enqueue runs enqueue.lua, or begin.lua for an attempt.
func (s *Store) Enqueue(r store.EnqueueRequest, done func(store.Answer, error)) {
	if r.Attempt != nil {
		s.beginAttempt(&r, done)
		return
	}
	t := s.asks.get()
	t.begin(s, t, r.Target, r.Inline, 0)
	t.fences = r.Fences
	t.sayScript(&s.scripts.Enqueue)
	t.sayKey(&t.line, keyspace.QueueSuffix)
	t.sayFence()
	t.sayLine(r.Claim)
	t.sayAsk(r.Join)
	t.done, t.decode = done, decodeEnqueue
	s.pipeline.Do(&t.Call, pipeline.Acquire)
}

// Renew runs renew.lua.
func (s *Store) Renew(r store.RenewRequest, done func(store.Renewal, error)) {
	t := s.renewals.get()
	t.begin(s, t, r.Target, false, 0)
	t.fences = r.Fences
	t.sayScript(&s.scripts.Renew)
	t.sayKey(&t.line, keyspace.QueueSuffix)
	if r.Attempt != nil {
		t.sayKey(&t.record, keyspace.RecordSuffix)
	}
	t.sayFence()
	t.sayLease()
	t.args = append(t.args, r.Fences)
	if r.Attempt != nil {
		t.args = append(t.args, t.keep.number(r.Attempt.Keep.Milliseconds()))
	}
	t.done = done
	s.pipeline.Do(&t.Call, pipeline.Renew)
}

// Release runs release.lua, or finish.lua for an attempt.
func (s *Store) Release(r store.ReleaseRequest, done func(store.ReleaseResult, error)) {
	if r.Attempt != nil && r.Ending != store.NoEnding {
		s.finishAttempt(&r, done)
		return
	}
	t := s.releases.get()
	t.begin(s, t, r.Target, r.Inline, 0)
	t.rejoin = r.Rejoin
	t.sayScript(&s.scripts.Release)
	t.sayKey(&t.line, keyspace.QueueSuffix)
	t.sayLine(r.Claim)
	t.args = append(t.args, t.rejoined.set(r.Rejoin))
	t.brief = r.NoWaiters && r.Rejoin == ""
	t.done, t.decode = done, decodeRelease
	s.pipeline.Do(&t.Call, pipeline.Release)
}

// pool keeps transitions that are over, with their memory, for the next ones.
type pool[T any] struct{ free sync.Pool }

func (p *pool[T]) get() *T {
	if t, ok := p.free.Get().(*T); ok {
		return t
	}
	return new(T)
}

// asking is a Take or an Enqueue.
type asking struct {
	operation
	done   func(store.Answer, error)
	decode func(got pipeline.Reply, x *operation) (store.Answer, error)
}

func (t *asking) Settle(got pipeline.Reply, uncertain bool) {
	answer, err := t.decode(got, &t.operation)
	switch {
	case err != nil:
		t.done(store.Answer{}, command.NewFault(err, uncertain))
		return
	case answer.Granted && got.Unconfirmed != nil:
		t.done(store.Answer{}, command.NewFault(got.Unconfirmed, true))
		return
	}
	t.done(answer, nil)
}

// Late reports a key that a send has won which was left behind.
func (t *asking) Late(got pipeline.Reply) {
	if answer, err := t.decode(got, &t.operation); err == nil && answer.Granted {
		t.store.lateGrant(t.target.Key, t.target.Token)
	}
}

func (t *asking) Free() {
	t.clear()
	t.done = nil
	t.store.asks.free.Put(t)
}

type renewing struct {
	operation
	done func(store.Renewal, error)
}

func (t *renewing) Settle(got pipeline.Reply, uncertain bool) {
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

func (t *renewing) Late(pipeline.Reply) {}

func (t *renewing) Free() {
	t.clear()
	t.done = nil
	t.store.renewals.free.Put(t)
}

// releasing is a Release.
type releasing struct {
	operation
	done   func(store.ReleaseResult, error)
	decode func(got pipeline.Reply, x *operation) (store.ReleaseResult, error)
}

// Settle reads the answer. A token that is gone at the second send may have
// been released by the first one: then it is not known what became of the key. Nor
// does a key that was kept count where replicas have to know of it: no release waits
// for them, and the token that has rejoined asks again, and waits. What was done
// counts only once they know of it.
func (t *releasing) Settle(got pipeline.Reply, uncertain bool) {
	released, err := t.decode(got, &t.operation)
	switch {
	case err != nil:
		t.done(store.ReleaseResult{}, command.NewFault(err, uncertain))
		return
	case released.Status == store.NotHeld && uncertain, released.Status == store.Kept && t.store.acknowledged:
		released.Status = store.Unsure
	}
	if got.Unconfirmed != nil && released.Record != store.NotStored {
		t.done(store.ReleaseResult{}, command.NewFault(got.Unconfirmed, true))
		return
	}
	t.done(released, nil)
}

func (t *releasing) Late(got pipeline.Reply) {
	if released, err := t.decode(got, &t.operation); err == nil && released.Status == store.Kept {
		t.store.lateGrant(t.target.Key, t.rejoin)
	}
}

func (t *releasing) Free() {
	t.clear()
	t.done = nil
	t.store.releases.free.Put(t)
}
