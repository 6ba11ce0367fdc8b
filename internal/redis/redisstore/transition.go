package redisstore

import (
	"sync"

	"github.com/reqlock/reqlock/internal/store"
)

// Take sends SET NX, with GET where r.Look is set, or the stand-in of that on
// servers before Redis 7. Our own token in the key means held.
// Where replicas have to acknowledge a grant it is the stand-in that is sent.
func (s *Store) Take(r store.Request, done func(store.Answer, error)) {
	t := s.asks.get()
	t.begin(s, t, &r)
	if s.replicas.wanted() {
		t.sayScript(&s.scripts.take, &r)
		t.sayLease(&r)
	} else {
		t.sayTake(&r)
	}
	t.done, t.decode = done, decodeTake
	s.lanesOf(&t.call).takes.do(&t.call)
}

// Enqueue runs enqueue.lua, or begin.lua for an attempt.
func (s *Store) Enqueue(r store.Request, done func(store.Answer, error)) {
	if r.Attempt != nil {
		s.beginAttempt(&r, done)
		return
	}
	t := s.asks.get()
	t.begin(s, t, &r)
	t.sayScript(&s.scripts.enqueue, &r)
	t.sayKey(&t.line, lineSuffix)
	t.sayFence(&r)
	t.sayLine(&r)
	t.sayAsk(&r)
	t.done, t.decode = done, decodeEnqueue
	s.lanesOf(&t.call).takes.do(&t.call)
}

// Renew runs renew.lua.
func (s *Store) Renew(r store.Request, done func(store.Renewal, error)) {
	t := s.renewals.get()
	t.begin(s, t, &r)
	t.sayScript(&s.scripts.renew, &r)
	t.sayKey(&t.line, lineSuffix)
	if r.Attempt != nil {
		t.sayKey(&t.record, recordSuffix)
	}
	t.sayFence(&r)
	t.sayLease(&r)
	t.args = append(t.args, r.Fences)
	if r.Attempt != nil {
		t.args = append(t.args, t.keep.number(r.Attempt.Keep.Milliseconds()))
	}
	t.done = done
	s.renewsOf(s.lanesOf(&t.call)).do(&t.call)
}

// Release runs release.lua, or finish.lua for an attempt.
func (s *Store) Release(r store.Request, done func(store.Released, error)) {
	if r.Attempt != nil {
		s.finishAttempt(&r, done)
		return
	}
	t := s.releases.get()
	t.begin(s, t, &r)
	t.sayScript(&s.scripts.release, &r)
	t.sayKey(&t.line, lineSuffix)
	t.sayLine(&r)
	t.args = append(t.args, t.rejoined.set(r.Rejoin))
	t.brief = r.Alone && r.Rejoin == ""
	t.done, t.decode = done, decodeRelease
	s.lanesOf(&t.call).keeps.do(&t.call)
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
	exchange
	done   func(store.Answer, error)
	decode func(got reply, x *exchange) (store.Answer, error)
}

func (t *asking) settle(got reply, uncertain bool) {
	answer, err := t.decode(got, &t.exchange)
	switch {
	case err != nil:
		t.done(store.Answer{}, newFault(err, uncertain))
		return
	case answer.Granted && got.unconfirmed != nil:
		t.done(store.Answer{}, newFault(got.unconfirmed, true))
		return
	}
	t.done(answer, nil)
}

// late reports a key that a send has won which was left behind.
func (t *asking) late(got reply) {
	if answer, err := t.decode(got, &t.exchange); err == nil && answer.Granted {
		t.store.lateGrant(t.request.Key, t.request.Token)
	}
}

func (t *asking) free() {
	t.clear()
	t.done = nil
	t.store.asks.free.Put(t)
}

type renewing struct {
	exchange
	done func(store.Renewal, error)
}

func (t *renewing) settle(got reply, uncertain bool) {
	renewal, err := decodeRenew(got, &t.exchange)
	switch {
	case err != nil:
		t.done(store.Renewal{}, newFault(err, uncertain))
		return
	case renewal.Held && got.unconfirmed != nil:
		t.done(store.Renewal{}, newFault(got.unconfirmed, true))
		return
	}
	t.done(renewal, nil)
}

func (t *renewing) late(reply) {}

func (t *renewing) free() {
	t.clear()
	t.done = nil
	t.store.renewals.free.Put(t)
}

// releasing is a Release.
type releasing struct {
	exchange
	done   func(store.Released, error)
	decode func(got reply, x *exchange) (store.Released, error)
}

// settle reads the answer. A token that is gone at the second send may have
// been released by the first one: then it is not known what became of the key. Nor
// does a key that was kept count where replicas have to know of it: no release waits
// for them, and the token that has rejoined asks again, and waits. What was done
// counts only once they know of it.
func (t *releasing) settle(got reply, uncertain bool) {
	released, err := t.decode(got, &t.exchange)
	switch {
	case err != nil:
		t.done(store.Released{}, newFault(err, uncertain))
		return
	case released.End == store.NotHeld && uncertain, released.End == store.Kept && t.store.replicas.wanted():
		released.End = store.Unsure
	}
	if got.unconfirmed != nil && released.Stored != store.NotStored {
		t.done(store.Released{}, newFault(got.unconfirmed, true))
		return
	}
	t.done(released, nil)
}

func (t *releasing) late(got reply) {
	if released, err := t.decode(got, &t.exchange); err == nil && released.End == store.Kept {
		t.store.lateGrant(t.request.Key, t.request.Rejoin)
	}
}

func (t *releasing) free() {
	t.clear()
	t.done = nil
	t.store.releases.free.Put(t)
}
