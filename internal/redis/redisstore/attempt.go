package redisstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// abortLife is how long the record of an abort is kept. It only has to outlive
// copies of commands that a network holds back.
const abortLife = time.Minute

// beginAttempt runs begin.lua.
func (s *Store) beginAttempt(r *store.Request, done func(store.Answer, error)) {
	t := s.asks.get()
	t.begin(s, t, r)
	t.sayScript(&s.scripts.begin, r)
	t.sayKey(&t.line, lineSuffix)
	t.sayKey(&t.record, recordSuffix)
	t.sayFence(r)
	t.sayLine(r)
	t.sayAsk(r)
	t.sayAttempt(r.Attempt, r.Attempt.Keep)
	if r.Attempt.Rerun {
		t.args = append(t.args, "rerun")
	} else {
		t.args = append(t.args, "reject")
	}
	t.done, t.decode = done, decodeBegin
	s.lanesOf(&t.call).begins.do(&t.call)
}

// finishAttempt runs finish.lua.
func (s *Store) finishAttempt(r *store.Request, done func(store.Released, error)) {
	t := s.releases.get()
	t.begin(s, t, r)
	t.sayScript(&s.scripts.finish, r)
	t.sayKey(&t.line, lineSuffix)
	t.sayKey(&t.record, recordSuffix)
	t.sayLine(r)
	switch r.Ending {
	case store.Commit:
		t.args = append(t.args, "D")
		t.sayAttempt(r.Attempt, r.Attempt.Keep)
		t.args = append(t.args, t.result.lend(r.Record))
	case store.Seal:
		t.args = append(t.args, "U")
		t.sayAttempt(r.Attempt, r.Attempt.Keep)
	case store.Abort:
		t.args = append(t.args, "A")
		t.sayAttempt(r.Attempt, abortLife)
	}
	t.done, t.decode = done, decodeFinish
	lanes := s.lanesOf(&t.call)
	if r.Ending == store.Abort {
		s.abortsOf(lanes).do(&t.call)
		return
	}
	lanes.finishes.do(&t.call)
}

// Resolve runs resolve.lua.
func (s *Store) Resolve(r store.Request, done func(running bool, err error)) {
	t := &resolving{done: done}
	t.begin(s, t, &r)
	t.sayScript(&s.scripts.resolve, &r)
	t.sayKey(&t.record, recordSuffix)
	s.lanesOf(&t.call).keeps.do(&t.call)
}

// sayAttempt adds the fingerprint, and how long to keep the record.
func (x *exchange) sayAttempt(a *store.Attempt, keep time.Duration) {
	x.args = append(x.args, x.fingerprint.lend(a.Fingerprint), x.keep.number(keep.Milliseconds()))
}

// resolving is a Resolve. There are few.
type resolving struct {
	exchange
	done func(running bool, err error)
}

func (t *resolving) settle(got reply, uncertain bool) {
	running, err := decodeResolve(got)
	if err != nil {
		t.done(false, newFault(err, uncertain))
		return
	}
	t.done(running, nil)
}

func (t *resolving) late(reply) {}

func (t *resolving) free() {}
