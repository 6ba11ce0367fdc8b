package redisstore

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// twoReplicas are all replicas of a master behind Sentinels. Their timeout leaves room for a
// busy machine.
var twoReplicas = command.Replicas{Count: 2, Timeout: 2 * time.Second}

// withTimeout returns the replicas with another timeout: a short one if the replicas cannot
// acknowledge, because the whole timeout passes then.
func withTimeout(r command.Replicas, timeout time.Duration) command.Replicas {
	r.Timeout = timeout
	return r
}

// newReplicatedStore returns a store that waits until replicas have acknowledged a grant.
func newReplicatedStore(t *testing.T, rdb redis.UniversalClient, replicas command.Replicas) *syncStore {
	t.Helper()
	s, err := New(rdb, "p:", storetest.Me, replicas)
	if err != nil {
		t.Fatal(err)
	}
	storetest.CloseAtEnd(t, s)
	return &syncStore{Store: s, tb: t}
}

// startReplicated starts a master with two replicas and Sentinels. Clients may use WAIT.
func startReplicated(t *testing.T) *redistest.Sentinels {
	t.Helper()
	sentinels := redistest.StartSentinel(t)
	for _, server := range sentinels.Servers() {
		server.Grant(redistest.ReplicaRights)
	}
	return sentinels
}

// A replicatedCase is a transition on servers with replicas. waits says that replicas have to
// acknowledge it.
type replicatedCase struct {
	name   string
	before storetest.State
	do     func(t *testing.T, s *syncStore) (granted bool, err error)
	waits  bool
}

var replicatedCases = []replicatedCase{
	{name: "take", waits: true, do: takeGranted},
	{name: "take again", waits: true, before: storetest.State{Value: storetest.Me1, TTL: time.Hour}, do: takeGranted},
	{name: "enqueue", waits: true, do: enqueueGranted},
	{name: "confirm a hand-off", waits: true, before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim}, do: enqueueGranted},
	{name: "confirm a hand-off that has a longer TTL", waits: true, before: storetest.State{Value: storetest.Me1, TTL: time.Hour}, do: enqueueGranted},
	{name: "renew", waits: true, before: storetest.State{Value: storetest.Me1, TTL: time.Hour}, do: func(t *testing.T, s *syncStore) (bool, error) {
		t.Helper()
		got, err := s.Renew(t.Context(), storetest.Request(storetest.Me1))
		return got.Held, err
	}},
	{name: "share", waits: true, do: sharedGranted(0)},
	{name: "share with a number", waits: true, do: sharedGranted(8)},
	{name: "share again", waits: true, before: shared(storetest.TTL), do: sharedGranted(0)},
	{name: "share again with a number", waits: true, before: shared(time.Hour), do: sharedGranted(8)},
	{name: "confirm a hand-off to a shared token", waits: true, before: storetest.State{Value: storetest.MePermit1, TTL: storetest.Claim}, do: sharedGranted(0)},
	{name: "renew a shared lease", waits: true, before: shared(time.Hour), do: func(t *testing.T, s *syncStore) (bool, error) {
		t.Helper()
		got, err := s.Renew(t.Context(), sharedRequest(0))
		return got.Held, err
	}},
	{name: "begin", waits: true, do: beginGranted},
	{name: "begin again", waits: true, before: storetest.State{Value: storetest.Me1, TTL: time.Hour, Record: runningRecord(storetest.Me1, "1")}, do: beginGranted},
	{name: "commit", waits: true, before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1")}, do: finishStored(store.Commit)},
	{name: "commit again", waits: true, before: storetest.State{Record: doneRecord(storetest.Me1)}, do: finishStored(store.Commit)},
	{name: "seal", waits: true, before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1")}, do: finishStored(store.Seal)},

	{name: "abort", before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1")}, do: finishStored(store.Abort)},
	{name: "release", before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, do: func(t *testing.T, s *syncStore) (bool, error) {
		t.Helper()
		got, err := s.Release(t.Context(), storetest.Request(storetest.Me1))
		return got.Status == store.Freed, err
	}},
	{name: "release a shared lease", before: shared(storetest.TTL), do: func(t *testing.T, s *syncStore) (bool, error) {
		t.Helper()
		got, err := s.Release(t.Context(), sharedRequest(0))
		return got.Status == store.Freed, err
	}},
	{name: "release and rejoin", before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, do: func(t *testing.T, s *syncStore) (bool, error) {
		t.Helper()
		r := storetest.Request(storetest.Me1)
		r.Rejoin = storetest.Me2
		got, err := s.Release(t.Context(), r)
		return got.Status == store.Kept || got.Status == store.Unsure, err
	}},
	{name: "forget", before: storetest.State{Record: runningRecord(storetest.Bob1, "1")}, do: resolvedAs(store.Forget)},
	{name: "answer", waits: true, before: storetest.State{Record: runningRecord(storetest.Bob1, "1")}, do: resolvedAs(store.ResolveAnswered)},
	{name: "answer again", waits: true, before: storetest.State{Record: resolvedRecord(storetest.Bob1, storetest.Record)}, do: resolvedAs(store.ResolveAnswered)},
	{name: "mark as done", waits: true, before: storetest.State{Record: runningRecord(storetest.Bob1, "1")}, do: resolvedAs(store.ResolveDone)},
	{name: "outcome", before: storetest.State{Record: doneRecord(storetest.Bob1)}, do: func(t *testing.T, s *syncStore) (bool, error) {
		t.Helper()
		return readOutcome(storetest.Keep)(t, s).read.State == store.WasAnswered, nil
	}},
}

// resolvedAs returns a transition that resolves the attempt of Bob1.
func resolvedAs(resolution store.Resolution) func(t *testing.T, s *syncStore) (bool, error) {
	return func(t *testing.T, s *syncStore) (bool, error) {
		t.Helper()
		r := storetest.Request("")
		r.Seen, r.Resolution, r.Keep, r.Record = nameOf(storetest.Bob1), resolution, storetest.Keep, []byte(storetest.Record)
		got, err := s.Resolve(t.Context(), r)
		return got == store.Resolved, err
	}
}

func takeGranted(t *testing.T, s *syncStore) (bool, error) {
	t.Helper()
	got, err := s.Take(t.Context(), storetest.Request(storetest.Me1))
	return got.Granted, err
}

func enqueueGranted(t *testing.T, s *syncStore) (bool, error) {
	t.Helper()
	got, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me1))
	return got.Granted, err
}

// shared returns the state while the lease of sharedRequest is out for so long.
func shared(left time.Duration) storetest.State {
	return storetest.State{Value: "shared 77 - 0", TTL: left, Shared: leases{storetest.MePermit1: left}}
}

func sharedGranted(fences int) func(t *testing.T, s *syncStore) (bool, error) {
	return func(t *testing.T, s *syncStore) (bool, error) {
		t.Helper()
		got, err := s.Enqueue(t.Context(), sharedRequest(fences))
		return got.Granted && (got.Fence > 0) == (fences > 0), err
	}
}

func beginGranted(t *testing.T, s *syncStore) (bool, error) {
	t.Helper()
	got, err := s.Enqueue(t.Context(), storetest.AttemptRequest(storetest.Me1))
	return got.Granted, err
}

func finishStored(ending store.Ending) func(t *testing.T, s *syncStore) (bool, error) {
	return func(t *testing.T, s *syncStore) (bool, error) {
		t.Helper()
		r := storetest.AttemptRequest(storetest.Me1)
		r.Ending = ending
		if ending == store.Commit {
			r.Record = []byte(storetest.Record)
		}
		got, err := s.Release(t.Context(), r)
		return got.Record == store.WasStored, err
	}
}

// writes are the commands with which the scripts write.
var writes = []string{"SET", "PEXPIRE", "PEXPIREAT", "HSET", "DEL"}
