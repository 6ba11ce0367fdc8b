package redisstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
)

// abortTTL is the TTL of the record of an abort. The record only has to outlive copies of
// commands that the network delays.
const abortTTL = time.Minute

// beginAttempt runs begin.lua.
func (s *Store) beginAttempt(r *store.EnqueueRequest, done func(store.Answer, error)) {
	t := s.acquires.get()
	t.init(s, t, r.Target, r.Inline, 0)
	t.fences, t.attempt = r.Fences, r.Attempt
	t.encodeScript(&s.scripts.Begin)
	t.encodeKey(&t.queue, keyspace.QueueSuffix)
	t.encodeKey(&t.record, keyspace.RecordSuffix)
	t.encodeFence()
	t.encodeQueue(r.Claim)
	t.encodeAsk(boolArg(r.Join))
	t.encodeAttempt(r.Attempt, r.Attempt.Keep)
	if r.Attempt.Rerun {
		t.args = append(t.args, "rerun")
	} else {
		t.args = append(t.args, "reject")
	}
	t.encodeReference(r.Attempt)
	t.done, t.decode = done, decodeBegin
	s.pipeline.Do(&t.Call, pipeline.Begin)
}

// finishAttempt runs finish.lua.
func (s *Store) finishAttempt(r *store.ReleaseRequest, done func(store.ReleaseResult, error)) {
	t := s.releases.get()
	t.init(s, t, r.Target, r.Inline, len(r.Record))
	t.ending = r.Ending
	t.encodeScript(&s.scripts.Finish)
	t.encodeKey(&t.queue, keyspace.QueueSuffix)
	t.encodeKey(&t.record, keyspace.RecordSuffix)
	t.encodeQueue(r.Claim)
	class := pipeline.Commit
	switch r.Ending {
	case store.EndCommit:
		t.args = append(t.args, "D")
		t.encodeAttempt(r.Attempt, r.Attempt.Keep)
		t.args = append(t.args, t.result.setBytes(r.Record))
		t.encodeReference(r.Attempt)
	case store.EndDone:
		t.args = append(t.args, "U")
		t.encodeAttempt(r.Attempt, r.Attempt.Keep)
		if r.Attempt.Reference != "" {
			t.args = append(t.args, "") // no answer
		}
		t.encodeReference(r.Attempt)
	case store.EndAbort:
		class = pipeline.Abort
		t.args = append(t.args, "A")
		t.encodeAttempt(r.Attempt, abortTTL)
	}
	t.done, t.decode = done, decodeFinish
	s.pipeline.Do(&t.Call, class)
}

// encodeAttempt adds the fingerprint of the request and the TTL of its record.
func (x *operation) encodeAttempt(a *store.Attempt, keep time.Duration) {
	x.args = append(x.args, x.fingerprint.setBytes(a.Fingerprint), x.keep.setInt(keep.Milliseconds()))
}

// encodeReference adds the reference of the attempt, the last argument of a script, if it has one.
func (x *operation) encodeReference(a *store.Attempt) {
	if a.Reference != "" {
		x.args = append(x.args, x.reference.setString(a.Reference))
	}
}
