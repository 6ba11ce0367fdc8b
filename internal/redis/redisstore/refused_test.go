package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// calls are the transitions that run scripts, with and without fencing.
var calls = map[string]func(*testing.T, *syncStore) error{
	"enqueue": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := storetest.Request(storetest.Me1)
		r.Fences = 8
		_, err := s.Enqueue(t.Context(), r)
		return err
	},
	"try": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := storetest.Request(storetest.Me1)
		r.Join, r.Fences = false, 8
		_, err := s.Enqueue(t.Context(), r)
		return err
	},
	"renew": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := storetest.Request(storetest.Me1)
		r.Fences = 8
		_, err := s.Renew(t.Context(), r)
		return err
	},
	"release": func(t *testing.T, s *syncStore) error {
		t.Helper()
		_, err := s.Release(t.Context(), storetest.Request(storetest.Me1))
		return err
	},
	"rejoin": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := storetest.Request(storetest.Me1)
		r.Rejoin = storetest.Me2
		_, err := s.Release(t.Context(), r)
		return err
	},
	"begin": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := storetest.AttemptRequest(storetest.Me1)
		r.Fences = 8
		_, err := s.Enqueue(t.Context(), r)
		return err
	},
	"begin anew": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := storetest.AttemptRequest(storetest.Me1)
		r.Attempt.Rerun, r.Fences = true, 8
		_, err := s.Enqueue(t.Context(), r)
		return err
	},
	"commit": ending(store.Commit),
	"seal":   ending(store.Seal),
	"abort":  ending(store.Abort),
	"resolve": func(t *testing.T, s *syncStore) error {
		t.Helper()
		_, err := s.Resolve(t.Context(), storetest.Request(""))
		return err
	},
}

func ending(ending store.Ending) func(*testing.T, *syncStore) error {
	return func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := storetest.AttemptRequest(storetest.Me1)
		r.Ending, r.Record = ending, []byte(storetest.Record)
		_, err := s.Release(t.Context(), r)
		return err
	}
}

// dump returns everything the server holds, with the time of each key's end.
func dump(t *testing.T, rdb *redis.Client) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		ends := rdb.Do(t.Context(), "pexpiretime", key).String()
		all[key] = rdb.Dump(t.Context(), key).Val() + ends
	}
	return all
}

// refused fails the test unless the call is refused, for good and whole.
func refused(t *testing.T, rdb *redis.Client, call func(*testing.T, *syncStore) error, says string) {
	t.Helper()
	s := newStore(t, rdb)
	before := dump(t, rdb)
	err := call(t, s)
	var fault *store.Fault
	if !errors.As(err, &fault) || fault.Temporary || fault.Unknown || !strings.Contains(err.Error(), says) {
		t.Errorf("%#v: %v", err, err)
	}
	after := dump(t, rdb)
	if len(after) != len(before) {
		t.Errorf("there were %d keys, now %d", len(before), len(after))
	}
	for key, value := range before {
		if after[key] != value {
			t.Errorf("%q has changed", key)
		}
	}
}

//faults:row 26
func TestAKeyOfTheWrongTypeIsRefusedBeforeAnythingChanges(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	wrong := func(key string) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			rdb.Del(t.Context(), key)
			if err := rdb.HSet(t.Context(), key, "f", "v").Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	fence := func(value string) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			if err := rdb.Set(t.Context(), storetest.FenceName, value, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := func(t *testing.T) {
		t.Helper()
		if err := rdb.Set(t.Context(), storetest.RecordName, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	line := []string{storetest.Bob1, storetest.Me1, storetest.Eve1}
	free, held, others := storetest.State{Queue: line}, storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: line}, storetest.State{Value: storetest.Bob2, TTL: storetest.Claim, Queue: line[2:]}
	ran, over := storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: line, Record: runs(storetest.Me1, "1")}, storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: line, Record: done(storetest.Bob1)}
	const wrongType, noNumber = "WRONGTYPE", "no such number"
	tests := []struct {
		name, call string
		before     storetest.State
		spoil      func(*testing.T)
		says       string
	}{
		{"lock", "enqueue", free, wrong(storetest.LockName), wrongType},
		{"lock", "try", free, wrong(storetest.LockName), wrongType},
		{"lock", "renew", free, wrong(storetest.LockName), wrongType},
		{"lock", "release", free, wrong(storetest.LockName), wrongType},
		{"lock", "rejoin", free, wrong(storetest.LockName), wrongType},

		{"line, free", "enqueue", free, wrong(storetest.QueueName), wrongType},
		{"line, held", "enqueue", held, wrong(storetest.QueueName), wrongType},
		{"line, another's", "enqueue", others, wrong(storetest.QueueName), wrongType},
		{"line, free", "try", free, wrong(storetest.QueueName), wrongType},
		{"line", "renew", held, wrong(storetest.QueueName), wrongType},
		{"line", "release", held, wrong(storetest.QueueName), wrongType},
		{"line, another's", "release", others, wrong(storetest.QueueName), wrongType},
		{"line", "rejoin", held, wrong(storetest.QueueName), wrongType},

		{"fence, free", "enqueue", free, wrong(storetest.FenceName), wrongType},
		{"fence, held", "enqueue", held, wrong(storetest.FenceName), wrongType},
		{"fence, another's", "enqueue", others, wrong(storetest.FenceName), wrongType},
		{"fence, free", "try", free, wrong(storetest.FenceName), wrongType},
		{"fence", "renew", held, wrong(storetest.FenceName), wrongType},

		{"fence of words", "enqueue", free, fence("abc"), noNumber},
		{"fence of nothing", "enqueue", held, fence(""), noNumber},
		{"fence below zero", "enqueue", others, fence("-5"), noNumber},
		{"fence with an exponent", "renew", held, fence("1e3"), noNumber},
		{"fence with a fraction", "renew", held, fence("1.5"), noNumber},
		{"fence in a line", "renew", held, fence("5\n"), noNumber},
		{"fence beyond all numbers", "renew", held, fence("9007199254740993"), noNumber},
		{"fence of many digits", "renew", held, fence(strings.Repeat("9", 500)), noNumber},

		{"lock, free", "begin", free, wrong(storetest.LockName), wrongType},
		{"line, free", "begin", free, wrong(storetest.QueueName), wrongType},
		{"line, a verdict", "begin", over, wrong(storetest.QueueName), wrongType},
		{"fence, held", "begin", held, wrong(storetest.FenceName), wrongType},
		{"fence, anew", "begin anew", storetest.State{Record: runs(storetest.Bob1, "1")}, wrong(storetest.FenceName), wrongType},
		{"record, free", "begin", free, text, wrongType},
		{"record, held", "begin", held, text, wrongType},
		{"lock", "commit", ran, wrong(storetest.LockName), wrongType},
		{"line", "commit", ran, wrong(storetest.QueueName), wrongType},
		{"record", "commit", held, text, wrongType},
		{"record, another's key", "seal", others, text, wrongType},
		{"record", "abort", held, text, wrongType},
		{"lock", "resolve", ran, wrong(storetest.LockName), wrongType},
		{"record", "resolve", free, text, wrongType},
	}
	for _, test := range tests {
		t.Run(test.call+" "+test.name, func(t *testing.T) {
			test.before.Put(t, rdb)
			test.spoil(t)
			audit := listenAs(t, rdb, storetest.Bob, storetest.Eve)
			refused(t, rdb, calls[test.call], test.says)
			if said := audit.heard(t, rdb); len(said) > 0 {
				t.Errorf("said %q", said)
			}
		})
	}
}

//faults:row 20: OOM, and what goes on nevertheless
func TestAServerWithoutMemory(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	full := func(t *testing.T, before storetest.State) {
		t.Helper()
		before.Put(t, rdb)
		if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rdb.ConfigSet(context.Background(), "maxmemory", "0") })
	}
	for _, test := range []struct {
		name, call string
		before     storetest.State
	}{
		{"a free key", "enqueue", storetest.State{}},
		{"a free key behind a line", "enqueue", storetest.State{Queue: []string{storetest.Bob1, storetest.Eve1}}},
		{"another's key", "enqueue", storetest.State{Value: storetest.Bob2, TTL: storetest.TTL}},
		{"a free key", "try", storetest.State{}},
		{"a free key behind a line", "try", storetest.State{Queue: []string{storetest.Bob1, storetest.Eve1}}},
		{"a free key", "begin", storetest.State{}},
		{"a free key behind a line", "begin", storetest.State{Queue: []string{storetest.Bob1, storetest.Eve1}}},
		{"another's key", "begin", storetest.State{Value: storetest.Bob2, TTL: storetest.TTL, Record: runs(storetest.Bob2, "1")}},
		{"a free key, after one that died", "begin anew", storetest.State{Record: runs(storetest.Bob2, "1")}},
	} {
		t.Run("refuses "+test.call+" whole: "+test.name, func(t *testing.T) {
			defer listenAs(t, rdb, storetest.Bob).heard(t, rdb)
			full(t, test.before)
			refused(t, rdb, calls[test.call], "OOM")
		})
	}
	for _, test := range []struct {
		name, call    string
		before, after storetest.State
	}{
		{
			"confirms a grant", "enqueue",
			storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
		},
		{
			"renews", "renew",
			storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
		},
		{"frees", "release", storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, storetest.State{}},
		{
			"hands over", "release",
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Eve1, storetest.Bob1}},
			storetest.State{Value: storetest.Bob1, TTL: storetest.Claim},
		},
		{
			"hands over and rejoins", "rejoin",
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}},
			storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Me2}},
		},
		{"keeps", "rejoin", storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, storetest.State{Value: storetest.Me2, TTL: storetest.TTL}},
		{
			"begins in a grant", "begin",
			storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runs(storetest.Me1, "1")},
		},
		{
			"tells a verdict and hands over", "begin",
			storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: []string{storetest.Bob1}, Record: done(storetest.Eve1)},
			storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: done(storetest.Eve1)},
		},
		{
			"commits and hands over", "commit",
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runs(storetest.Me1, "1")},
			storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Record: done(storetest.Me1)},
		},
		{"commits what was lost", "commit", storetest.State{}, storetest.State{Record: done(storetest.Me1)}},
		{
			"seals", "seal",
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1")},
			storetest.State{Record: sealed(storetest.Me1)},
		},
		{
			"aborts what has not begun", "abort",
			storetest.State{Queue: []string{storetest.Me1}},
			storetest.State{Record: aborted(storetest.Me1), RecordTTL: abortTTL},
		},
		{"resolves", "resolve", storetest.State{Record: runs(storetest.Bob1, "1")}, storetest.State{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			defer listenAs(t, rdb, storetest.Bob).heard(t, rdb)
			full(t, test.before)
			if err := calls[test.call](t, newStore(t, rdb)); err != nil {
				t.Error(err)
			}
			test.after.Check(t, rdb)
		})
	}
}

// Without the right to publish, nobody can be told: the lock stays right.
func TestAnACLThatRefusesPublish(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{"the command": "-publish", "the channels": "resetchannels"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			rdb := server.Client(t)
			if err := rdb.Do(t.Context(), "acl", "setuser", "default", rule).Err(); err != nil {
				t.Fatal(err)
			}
			s := newStore(t, rdb)
			storetest.State{Value: storetest.Bob1, TTL: storetest.TTL}.Put(t, rdb)
			if got := enqueue(t, s); got.granted || got.holder != storetest.Bob1 {
				t.Errorf("enqueue: %+v", got)
			}
			storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Me1}}.Check(t, rdb)
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}}.Put(t, rdb)
			if got := release(t, s); got.end != store.Freed {
				t.Errorf("release: %+v", got)
			}
			storetest.State{}.Check(t, rdb)
			storetest.State{Value: storetest.Bob1, TTL: storetest.TTL}.Put(t, rdb)
			if got := begin()(t, s); got.granted || got.holder != storetest.Bob1 {
				t.Errorf("begin: %+v", got)
			}
			storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Queue: []string{storetest.Me1}}.Check(t, rdb)
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Record: runs(storetest.Me1, "1")}.Put(t, rdb)
			if got := finish(store.Commit)(t, s); got.end != store.Freed || got.stored != store.WasStored {
				t.Errorf("commit: %+v", got)
			}
			storetest.State{Record: done(storetest.Me1)}.Check(t, rdb)
		})
	}
}
