package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// calls are the transitions that run scripts, with and without fencing.
var calls = map[string]func(*testing.T, *syncStore) error{
	"enqueue": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := request(me1)
		r.Fences = 8
		_, err := s.Enqueue(t.Context(), r)
		return err
	},
	"try": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := request(me1)
		r.Join, r.Fences = false, 8
		_, err := s.Enqueue(t.Context(), r)
		return err
	},
	"renew": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := request(me1)
		r.Fences = 8
		_, err := s.Renew(t.Context(), r)
		return err
	},
	"release": func(t *testing.T, s *syncStore) error {
		t.Helper()
		_, err := s.Release(t.Context(), request(me1))
		return err
	},
	"rejoin": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := request(me1)
		r.Rejoin = me2
		_, err := s.Release(t.Context(), r)
		return err
	},
	"begin": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := attempt(me1)
		r.Fences = 8
		_, err := s.Enqueue(t.Context(), r)
		return err
	},
	"begin anew": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := attempt(me1)
		r.Attempt.Rerun, r.Fences = true, 8
		_, err := s.Enqueue(t.Context(), r)
		return err
	},
	"commit": ending(store.Commit),
	"seal":   ending(store.Seal),
	"abort":  ending(store.Abort),
	"resolve": func(t *testing.T, s *syncStore) error {
		t.Helper()
		_, err := s.Resolve(t.Context(), request(""))
		return err
	},
}

func ending(ending store.Ending) func(*testing.T, *syncStore) error {
	return func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := attempt(me1)
		r.Ending, r.Record = ending, []byte(theAnswer)
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
	if !errors.As(err, &fault) || fault.Passing || fault.Unknown || !strings.Contains(err.Error(), says) {
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
			if err := rdb.Set(t.Context(), theFence, value, 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := func(t *testing.T) {
		t.Helper()
		if err := rdb.Set(t.Context(), theRecord, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	line := []string{bob1, me1, eve1}
	free, held, others := state{line: line}, state{value: me1, ttl: claim, line: line}, state{value: bob2, ttl: claim, line: line[2:]}
	ran, over := state{value: me1, ttl: claim, line: line, record: runs(me1, "1")}, state{value: me1, ttl: claim, line: line, record: done(bob1)}
	const wrongType, noNumber = "WRONGTYPE", "no such number"
	tests := []struct {
		name, call string
		before     state
		spoil      func(*testing.T)
		says       string
	}{
		{"lock", "enqueue", free, wrong(theLock), wrongType},
		{"lock", "try", free, wrong(theLock), wrongType},
		{"lock", "renew", free, wrong(theLock), wrongType},
		{"lock", "release", free, wrong(theLock), wrongType},
		{"lock", "rejoin", free, wrong(theLock), wrongType},

		{"line, free", "enqueue", free, wrong(theLine), wrongType},
		{"line, held", "enqueue", held, wrong(theLine), wrongType},
		{"line, another's", "enqueue", others, wrong(theLine), wrongType},
		{"line, free", "try", free, wrong(theLine), wrongType},
		{"line", "renew", held, wrong(theLine), wrongType},
		{"line", "release", held, wrong(theLine), wrongType},
		{"line, another's", "release", others, wrong(theLine), wrongType},
		{"line", "rejoin", held, wrong(theLine), wrongType},

		{"fence, free", "enqueue", free, wrong(theFence), wrongType},
		{"fence, held", "enqueue", held, wrong(theFence), wrongType},
		{"fence, another's", "enqueue", others, wrong(theFence), wrongType},
		{"fence, free", "try", free, wrong(theFence), wrongType},
		{"fence", "renew", held, wrong(theFence), wrongType},

		{"fence of words", "enqueue", free, fence("abc"), noNumber},
		{"fence of nothing", "enqueue", held, fence(""), noNumber},
		{"fence below zero", "enqueue", others, fence("-5"), noNumber},
		{"fence with an exponent", "renew", held, fence("1e3"), noNumber},
		{"fence with a fraction", "renew", held, fence("1.5"), noNumber},
		{"fence in a line", "renew", held, fence("5\n"), noNumber},
		{"fence beyond all numbers", "renew", held, fence("9007199254740993"), noNumber},
		{"fence of many digits", "renew", held, fence(strings.Repeat("9", 500)), noNumber},

		{"lock, free", "begin", free, wrong(theLock), wrongType},
		{"line, free", "begin", free, wrong(theLine), wrongType},
		{"line, a verdict", "begin", over, wrong(theLine), wrongType},
		{"fence, held", "begin", held, wrong(theFence), wrongType},
		{"fence, anew", "begin anew", state{record: runs(bob1, "1")}, wrong(theFence), wrongType},
		{"record, free", "begin", free, text, wrongType},
		{"record, held", "begin", held, text, wrongType},
		{"lock", "commit", ran, wrong(theLock), wrongType},
		{"line", "commit", ran, wrong(theLine), wrongType},
		{"record", "commit", held, text, wrongType},
		{"record, another's key", "seal", others, text, wrongType},
		{"record", "abort", held, text, wrongType},
		{"lock", "resolve", ran, wrong(theLock), wrongType},
		{"record", "resolve", free, text, wrongType},
	}
	for _, test := range tests {
		t.Run(test.call+" "+test.name, func(t *testing.T) {
			test.before.put(t, rdb)
			test.spoil(t)
			audit := listenAs(t, rdb, bob, eve)
			refused(t, rdb, calls[test.call], test.says)
			if said := audit.heard(t, rdb); len(said) > 0 {
				t.Errorf("said %q", said)
			}
		})
	}
}

//faults:row 20: OOM, and what goes on nevertheless
func TestAServerWithoutMemory(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	full := func(t *testing.T, before state) {
		t.Helper()
		before.put(t, rdb)
		if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rdb.ConfigSet(context.Background(), "maxmemory", "0") })
	}
	for _, test := range []struct {
		name, call string
		before     state
	}{
		{"a free key", "enqueue", state{}},
		{"a free key behind a line", "enqueue", state{line: []string{bob1, eve1}}},
		{"another's key", "enqueue", state{value: bob2, ttl: ttl}},
		{"a free key", "try", state{}},
		{"a free key behind a line", "try", state{line: []string{bob1, eve1}}},
		{"a free key", "begin", state{}},
		{"a free key behind a line", "begin", state{line: []string{bob1, eve1}}},
		{"another's key", "begin", state{value: bob2, ttl: ttl, record: runs(bob2, "1")}},
		{"a free key, after one that died", "begin anew", state{record: runs(bob2, "1")}},
	} {
		t.Run("refuses "+test.call+" whole: "+test.name, func(t *testing.T) {
			defer listenAs(t, rdb, bob).heard(t, rdb)
			full(t, test.before)
			refused(t, rdb, calls[test.call], "OOM")
		})
	}
	for _, test := range []struct {
		name, call    string
		before, after state
	}{
		{
			"confirms a grant", "enqueue",
			state{value: me1, ttl: claim, line: []string{bob1}},
			state{value: me1, ttl: ttl, line: []string{bob1}},
		},
		{
			"renews", "renew",
			state{value: me1, ttl: claim, line: []string{bob1}},
			state{value: me1, ttl: ttl, line: []string{bob1}},
		},
		{"frees", "release", state{value: me1, ttl: ttl}, state{}},
		{
			"hands over", "release",
			state{value: me1, ttl: ttl, line: []string{eve1, bob1}},
			state{value: bob1, ttl: claim},
		},
		{
			"hands over and rejoins", "rejoin",
			state{value: me1, ttl: ttl, line: []string{bob1}},
			state{value: bob1, ttl: claim, line: []string{me2}},
		},
		{"keeps", "rejoin", state{value: me1, ttl: ttl}, state{value: me2, ttl: ttl}},
		{
			"begins in a grant", "begin",
			state{value: me1, ttl: claim, line: []string{bob1}},
			state{value: me1, ttl: ttl, line: []string{bob1}, record: runs(me1, "1")},
		},
		{
			"tells a verdict and hands over", "begin",
			state{value: me1, ttl: claim, line: []string{bob1}, record: done(eve1)},
			state{value: bob1, ttl: claim, record: done(eve1)},
		},
		{
			"commits and hands over", "commit",
			state{value: me1, ttl: ttl, line: []string{bob1}, record: runs(me1, "1")},
			state{value: bob1, ttl: claim, record: done(me1)},
		},
		{"commits what was lost", "commit", state{}, state{record: done(me1)}},
		{
			"seals", "seal",
			state{value: me1, ttl: ttl, record: runs(me1, "1")},
			state{record: sealed(me1)},
		},
		{
			"aborts what has not begun", "abort",
			state{line: []string{me1}},
			state{record: aborted(me1), recordTTL: abortLife},
		},
		{"resolves", "resolve", state{record: runs(bob1, "1")}, state{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			defer listenAs(t, rdb, bob).heard(t, rdb)
			full(t, test.before)
			if err := calls[test.call](t, newStore(t, rdb)); err != nil {
				t.Error(err)
			}
			test.after.check(t, rdb)
		})
	}
}

// Without the right to publish, nobody can be told: the lock stays right.
func TestAnACLThatRefusesPublish(t *testing.T) {
	for name, rule := range map[string]string{"the command": "-publish", "the channels": "resetchannels"} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			rdb := server.Client(t)
			if err := rdb.Do(t.Context(), "acl", "setuser", "default", rule).Err(); err != nil {
				t.Fatal(err)
			}
			s := newStore(t, rdb)
			state{value: bob1, ttl: ttl}.put(t, rdb)
			if got := enqueue(t, s); got.granted || got.holder != bob1 {
				t.Errorf("enqueue: %+v", got)
			}
			state{value: bob1, ttl: ttl, line: []string{me1}}.check(t, rdb)
			state{value: me1, ttl: ttl, line: []string{bob1}}.put(t, rdb)
			if got := release(t, s); got.end != store.Freed {
				t.Errorf("release: %+v", got)
			}
			state{}.check(t, rdb)
			state{value: bob1, ttl: ttl}.put(t, rdb)
			if got := begin()(t, s); got.granted || got.holder != bob1 {
				t.Errorf("begin: %+v", got)
			}
			state{value: bob1, ttl: ttl, line: []string{me1}}.check(t, rdb)
			state{value: me1, ttl: ttl, line: []string{bob1}, record: runs(me1, "1")}.put(t, rdb)
			if got := finish(store.Commit)(t, s); got.end != store.Freed || got.stored != store.WasStored {
				t.Errorf("commit: %+v", got)
			}
			state{record: done(me1)}.check(t, rdb)
		})
	}
}
