package redisstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

func bidBegin(s *Store, r store.Request, tell func(told)) {
	r.Attempt = &store.Attempt{Fingerprint: []byte("print"), Keep: keep, Rerun: true}
	bidEnqueue(s, r, tell)
}

func bidReject(s *Store, r store.Request, tell func(told)) {
	r.Attempt = &store.Attempt{Fingerprint: []byte("print"), Keep: keep}
	bidEnqueue(s, r, tell)
}

func bidFinish(ending store.Ending) asks {
	return func(s *Store, r store.Request, tell func(told)) {
		r.Attempt = &store.Attempt{Fingerprint: []byte("print"), Keep: keep}
		r.Ending, r.Record = ending, []byte(theAnswer)
		bidRelease(s, r, tell)
	}
}

// beginBids are a batch of the lane of those who begin an attempt.
func beginBids() []bid {
	return []bid{
		{
			key: "x0", do: bidBegin, join: true, fences: 8,
			after: state{value: ours, ttl: ttl, record: runs(ours, "1")}, want: "granted, line of 0, attempt 1",
		},
		{
			key: "x1", do: bidBegin, join: true, before: state{record: done(bob1)},
			after: state{record: done(bob1)}, want: "done" + theAnswer,
		},
		{
			key: "x2", do: bidBegin, join: true, before: state{record: runs(eve1, "1")},
			after: state{value: ours, ttl: ttl, record: runs(ours, "2")}, want: "granted, line of 0, attempt 2",
		},
		{
			key: "x3", do: bidReject, join: true,
			before: state{value: ours, ttl: claim, line: []string{ours, bob1}, record: runs(eve1, "1")},
			after:  state{value: bob1, ttl: claim, record: runs(eve1, "1")}, want: "interrupted",
		},
		{
			key: "x4", do: bidReject, join: true, before: state{value: bob1, ttl: time.Hour, record: runs(bob1, "1")},
			after: state{value: bob1, ttl: time.Hour, line: []string{ours}, record: runs(bob1, "1")},
			want:  "held by " + bob1 + ", running",
		},
		{key: "x5", do: bidBegin, before: state{value: aList}, after: state{value: aList}, want: sayWrongType},
		{
			key: "x6", do: bidBegin, fences: 64, before: state{value: ours, ttl: claim, line: []string{eve1, ours}},
			after: state{value: ours, ttl: ttl, line: []string{eve1}, record: runs(ours, "1")},
			want:  "granted, line of 1, attempt 1",
		},
	}
}

// finishBids are a batch of the lane of those who end one.
func finishBids() []bid {
	const gone = sayNotOurs + ", stored"
	held := state{value: ours, ttl: claim, record: runs(ours, "1")}
	return []bid{
		{
			key: "x0", do: bidFinish(store.Commit), before: held,
			after: state{record: done(ours)}, want: "freed, stored", again: gone,
		},
		{
			key: "x1", do: bidFinish(store.Abort), before: held,
			after: state{record: aborted(ours), recordTTL: abortLife}, want: "freed, stored", again: gone,
		},
		{
			key: "x2", do: bidFinish(store.Seal),
			before: state{value: ours, ttl: claim, line: []string{eve1, bob1, bob2}, record: runs(ours, "2")},
			after:  state{value: bob1, ttl: claim, line: []string{bob2}, record: sealed(ours)}, want: "handed, stored", again: gone,
		},
		{
			key: "x3", do: bidFinish(store.Commit), before: state{value: ours, ttl: claim},
			after: state{record: done(ours)}, want: "freed, restored", again: gone,
		},
		{
			key: "x4", do: bidFinish(store.Commit), before: state{value: bob1, ttl: time.Hour, record: runs(bob1, "1")},
			after: state{value: bob1, ttl: time.Hour, record: runs(bob1, "1")}, want: sayNotOurs + ", not stored",
		},
		{key: "x5", do: bidFinish(store.Commit), before: state{value: aList}, after: state{value: aList}, want: sayWrongType},
		{
			key: "x6", do: bidFinish(store.Seal), before: state{record: aborted(bob1), recordTTL: abortLife},
			after: state{record: sealed(ours)}, want: sayNotOurs + ", restored", again: gone,
		},
		{
			key: "x7", do: bidFinish(store.Abort), before: state{value: ours, ttl: claim, record: done(bob1)},
			after: state{record: done(bob1)}, want: "freed, not stored", again: sayNotOurs + ", not stored",
		},
	}
}
