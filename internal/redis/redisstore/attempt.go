package redisstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
)

// abortLife is how long the record of an abort is kept. It only has to outlive
// copies of commands that a network holds back.
const abortLife = time.Minute

// beginAttempt runs begin.lua.
func (s *Store) beginAttempt(r *store.EnqueueRequest, done func(store.Answer, error)) {
	t := s.asks.get()
	t.begin(s, t, r.Target, r.Inline, 0)
	t.fences, t.attempt = r.Fences, r.Attempt
	t.sayScript(&s.scripts.Begin)
	t.sayKey(&t.line, keyspace.QueueSuffix)
	t.sayKey(&t.record, keyspace.RecordSuffix)
	t.sayFence()
	t.sayLine(r.Claim)
	t.sayAsk(r.Join)
	t.sayAttempt(r.Attempt, r.Attempt.Keep)
	if r.Attempt.Rerun {
		t.args = append(t.args, "rerun")
	} else {
		t.args = append(t.args, "reject")
	}
	t.done, t.decode = done, decodeBegin
	s.pipeline.Do(&t.Call, pipeline.Begin)
}

// finishAttempt runs finish.lua.
func (s *Store) finishAttempt(r *store.ReleaseRequest, done func(store.ReleaseResult, error)) {
	t := s.releases.get()
	t.begin(s, t, r.Target, r.Inline, len(r.Record))
	t.attempt, t.ending, t.rejoin = r.Attempt, r.Ending, r.Rejoin
	t.sayScript(&s.scripts.Finish)
	t.sayKey(&t.line, keyspace.QueueSuffix)
	t.sayKey(&t.record, keyspace.RecordSuffix)
	t.sayLine(r.Claim)
	class := pipeline.Commit
	switch r.Ending {
	case store.Commit:
		t.args = append(t.args, "D")
		t.sayAttempt(r.Attempt, r.Attempt.Keep)
		t.args = append(t.args, t.result.lend(r.Record))
	case store.Seal:
		t.args = append(t.args, "U")
		t.sayAttempt(r.Attempt, r.Attempt.Keep)
	case store.Abort:
		class = pipeline.Abort
		t.args = append(t.args, "A")
		t.sayAttempt(r.Attempt, abortLife)
	}
	t.done, t.decode = done, decodeFinish
	s.pipeline.Do(&t.Call, class)
}

// Resolve runs resolve.lua.
func (s *Store) Resolve(r store.ResolveRequest, done func(running bool, err error)) {
	t := &resolving{done: done}
	t.begin(s, t, store.Target{Key: r.Key, Bound: r.Bound}, false, 0)
	t.sayScript(&s.scripts.Resolve)
	t.sayKey(&t.record, keyspace.RecordSuffix)
	s.pipeline.Do(&t.Call, pipeline.Release)
}

// sayAttempt adds the fingerprint, and how long to keep the record.
func (x *operation) sayAttempt(a *store.Attempt, keep time.Duration) {
	x.args = append(x.args, x.fingerprint.lend(a.Fingerprint), x.keep.number(keep.Milliseconds()))
}

// resolving is a Resolve. There are few.
type resolving struct {
	operation
	done func(running bool, err error)
}

func (t *resolving) Settle(got pipeline.Reply, uncertain bool) {
	running, err := decodeResolve(got)
	if err != nil {
		t.done(false, command.NewFault(err, uncertain))
		return
	}
	t.done(running, nil)
}

func (t *resolving) Late(pipeline.Reply) {}

func (t *resolving) Free() {}
