package redisstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func bidBegin(s *Store, r storetest.AnyRequest, tell func(told)) {
	r.Attempt = &store.Attempt{Fingerprint: []byte("print"), Keep: storetest.Keep, Rerun: true}
	bidEnqueue(s, r, tell)
}

func bidReject(s *Store, r storetest.AnyRequest, tell func(told)) {
	r.Attempt = &store.Attempt{Fingerprint: []byte("print"), Keep: storetest.Keep}
	bidEnqueue(s, r, tell)
}

func bidFinish(ending store.Ending) asks {
	return func(s *Store, r storetest.AnyRequest, tell func(told)) {
		r.Attempt = &store.Attempt{Fingerprint: []byte("print"), Keep: storetest.Keep}
		r.Ending, r.Record = ending, []byte(storetest.Record)
		bidRelease(s, r, tell)
	}
}

// beginBids are a batch of the lane of those who begin an attempt.
func beginBids() []bid {
	return []bid{
		{
			key: "x0", do: bidBegin, join: true, fences: 8,
			after: storetest.State{Value: ours, TTL: storetest.TTL, Record: runs(ours, "1")}, want: "granted, line of 0, attempt 1",
		},
		{
			key: "x1", do: bidBegin, join: true, before: storetest.State{Record: done(storetest.Bob1)},
			after: storetest.State{Record: done(storetest.Bob1)}, want: "done" + storetest.Record,
		},
		{
			key: "x2", do: bidBegin, join: true, before: storetest.State{Record: runs(storetest.Eve1, "1")},
			after: storetest.State{Value: ours, TTL: storetest.TTL, Record: runs(ours, "2")}, want: "granted, line of 0, attempt 2",
		},
		{
			key: "x3", do: bidReject, join: true,
			before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{ours, storetest.Bob1}, Record: runs(storetest.Eve1, "1")},
			after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: runs(storetest.Eve1, "1")}, want: "interrupted",
		},
		{
			key: "x4", do: bidReject, join: true, before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runs(storetest.Bob1, "1")},
			after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{ours}, Record: runs(storetest.Bob1, "1")},
			want:  "held by " + storetest.Bob1 + ", running",
		},
		{key: "x5", do: bidBegin, before: storetest.State{Value: aList}, after: storetest.State{Value: aList}, want: sayWrongType},
		{
			key: "x6", do: bidBegin, fences: 64, before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{storetest.Eve1, ours}},
			after: storetest.State{Value: ours, TTL: storetest.TTL, Queue: []string{storetest.Eve1}, Record: runs(ours, "1")},
			want:  "granted, line of 1, attempt 1",
		},
	}
}

// finishBids are a batch of the lane of those who end one.
func finishBids() []bid {
	const gone = sayNotOurs + ", stored"
	held := storetest.State{Value: ours, TTL: storetest.Claim, Record: runs(ours, "1")}
	return []bid{
		{
			key: "x0", do: bidFinish(store.Commit), before: held,
			after: storetest.State{Record: done(ours)}, want: "freed, stored", again: gone,
		},
		{
			key: "x1", do: bidFinish(store.Abort), before: held,
			after: storetest.State{Record: aborted(ours), RecordTTL: abortTTL}, want: "freed, stored", again: gone,
		},
		{
			key: "x2", do: bidFinish(store.Seal),
			before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{storetest.Eve1, storetest.Bob1, storetest.Bob2}, Record: runs(ours, "2")},
			after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Bob2}, Record: sealed(ours)}, want: "handed, stored", again: gone,
		},
		{
			key: "x3", do: bidFinish(store.Commit), before: storetest.State{Value: ours, TTL: storetest.Claim},
			after: storetest.State{Record: done(ours)}, want: "freed, restored", again: gone,
		},
		{
			key: "x4", do: bidFinish(store.Commit), before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runs(storetest.Bob1, "1")},
			after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runs(storetest.Bob1, "1")}, want: sayNotOurs + ", not stored",
		},
		{key: "x5", do: bidFinish(store.Commit), before: storetest.State{Value: aList}, after: storetest.State{Value: aList}, want: sayWrongType},
		{
			key: "x6", do: bidFinish(store.Seal), before: storetest.State{Record: aborted(storetest.Bob1), RecordTTL: abortTTL},
			after: storetest.State{Record: sealed(ours)}, want: sayNotOurs + ", restored", again: gone,
		},
		{
			key: "x7", do: bidFinish(store.Abort), before: storetest.State{Value: ours, TTL: storetest.Claim, Record: done(storetest.Bob1)},
			after: storetest.State{Record: done(storetest.Bob1)}, want: "freed, not stored", again: sayNotOurs + ", not stored",
		},
	}
}
