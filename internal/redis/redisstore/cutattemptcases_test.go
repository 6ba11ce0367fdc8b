package redisstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func sendBeginAgain(s *Store, r storetest.AnyRequest, report func(result)) {
	r.Attempt = &store.Attempt{Fingerprint: []byte("print"), Keep: storetest.Keep, Rerun: true}
	sendEnqueue(s, r, report)
}

func sendBegin(s *Store, r storetest.AnyRequest, report func(result)) {
	r.Attempt = &store.Attempt{Fingerprint: []byte("print"), Keep: storetest.Keep}
	sendEnqueue(s, r, report)
}

func sendFinish(ending store.Ending) sender {
	return func(s *Store, r storetest.AnyRequest, report func(result)) {
		r.Attempt = &store.Attempt{Fingerprint: []byte("print"), Keep: storetest.Keep}
		r.Ending, r.Record = ending, []byte(storetest.Record)
		sendRelease(s, r, report)
	}
}

// beginCases is a batch of the lane of begins.
func beginCases() []cutCase {
	return []cutCase{
		{
			key: "x0", do: sendBeginAgain, join: true, fences: 8,
			after: storetest.State{Value: ours, TTL: storetest.TTL, Record: runningRecord(ours, "1")}, want: "granted, 0 waiting, attempt 1",
		},
		{
			key: "x1", do: sendBeginAgain, join: true, before: storetest.State{Record: doneRecord(storetest.Bob1)},
			after: storetest.State{Record: doneRecord(storetest.Bob1)}, want: "done" + storetest.Record,
		},
		{
			key: "x2", do: sendBeginAgain, join: true, before: storetest.State{Record: runningRecord(storetest.Eve1, "1")},
			after: storetest.State{Value: ours, TTL: storetest.TTL, Record: runningRecord(ours, "2")}, want: "granted, 0 waiting, attempt 2",
		},
		{
			key: "x3", do: sendBegin, join: true,
			before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{ours, storetest.Bob1}, Record: runningRecord(storetest.Eve1, "1")},
			after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: runningRecord(storetest.Eve1, "1")}, want: "interrupted",
		},
		{
			key: "x4", do: sendBegin, join: true, before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runningRecord(storetest.Bob1, "1")},
			after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{ours}, Record: runningRecord(storetest.Bob1, "1")},
			want:  "held by " + storetest.Bob1 + ", running",
		},
		{key: "x5", do: sendBeginAgain, before: storetest.State{Value: aList}, after: storetest.State{Value: aList}, want: textWrongType},
		{
			key: "x6", do: sendBeginAgain, fences: 64, before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{storetest.Eve1, ours}},
			after: storetest.State{Value: ours, TTL: storetest.TTL, Queue: []string{storetest.Eve1}, Record: runningRecord(ours, "1")},
			want:  "granted, 1 waiting, attempt 1",
		},
	}
}

// finishCases is a batch of the lane of commits, seals and aborts.
func finishCases() []cutCase {
	const secondRun = textNotOurs + ", stored"
	held := storetest.State{Value: ours, TTL: storetest.Claim, Record: runningRecord(ours, "1")}
	return []cutCase{
		{
			key: "x0", do: sendFinish(store.Commit), before: held,
			after: storetest.State{Record: doneRecord(ours)}, want: "freed, stored", again: secondRun,
		},
		{
			key: "x1", do: sendFinish(store.Abort), before: held,
			after: storetest.State{Record: abortedRecord(ours), RecordTTL: abortTTL}, want: "freed, stored", again: secondRun,
		},
		{
			key: "x2", do: sendFinish(store.Seal),
			before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{storetest.Eve1, storetest.Bob1, storetest.Bob2}, Record: runningRecord(ours, "2")},
			after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Bob2}, Record: sealedRecord(ours)}, want: "handed, stored", again: secondRun,
		},
		{
			key: "x3", do: sendFinish(store.Commit), before: storetest.State{Value: ours, TTL: storetest.Claim},
			after: storetest.State{Record: doneRecord(ours)}, want: "freed, restored", again: secondRun,
		},
		{
			key: "x4", do: sendFinish(store.Commit), before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runningRecord(storetest.Bob1, "1")},
			after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Record: runningRecord(storetest.Bob1, "1")}, want: textNotOurs + ", not stored",
		},
		{key: "x5", do: sendFinish(store.Commit), before: storetest.State{Value: aList}, after: storetest.State{Value: aList}, want: textWrongType},
		{
			key: "x6", do: sendFinish(store.Seal), before: storetest.State{Record: abortedRecord(storetest.Bob1), RecordTTL: abortTTL},
			after: storetest.State{Record: sealedRecord(ours)}, want: textNotOurs + ", restored", again: secondRun,
		},
		{
			key: "x7", do: sendFinish(store.Abort), before: storetest.State{Value: ours, TTL: storetest.Claim, Record: doneRecord(storetest.Bob1)},
			after: storetest.State{Record: doneRecord(storetest.Bob1)}, want: "freed, not stored", again: textNotOurs + ", not stored",
		},
	}
}
