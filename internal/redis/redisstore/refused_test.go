package redisstore

import (
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
	"nowait": func(t *testing.T, s *syncStore) error {
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
	"vote": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := storetest.Request(storetest.Me1)
		r.Waiter = storetest.Me2
		_, err := storetest.Await(t, func(done func(store.Answer, error)) { s.Vote(voteRequest(r), done) })
		return err
	},
	"withdraw": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := storetest.Request(storetest.Me1)
		r.Rejoin = storetest.Me2
		_, err := storetest.Await(t, func(done func(store.ReleaseResult, error)) { s.Withdraw(withdrawRequest(r, true), done) })
		return err
	},
	"begin": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := storetest.AttemptRequest(storetest.Me1)
		r.Fences = 8
		_, err := s.Enqueue(t.Context(), r)
		return err
	},
	"rerun": func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := storetest.AttemptRequest(storetest.Me1)
		r.Attempt.Rerun, r.Fences = true, 8
		_, err := s.Enqueue(t.Context(), r)
		return err
	},
	"shared": func(t *testing.T, s *syncStore) error {
		t.Helper()
		_, err := s.Enqueue(t.Context(), sharedRequest(8))
		return err
	},
	"briefly shared": func(t *testing.T, s *syncStore) error {
		t.Helper()
		_, err := s.Enqueue(t.Context(), sharedRequest(0))
		return err
	},
	"renew shared": func(t *testing.T, s *syncStore) error {
		t.Helper()
		_, err := s.Renew(t.Context(), sharedRequest(8))
		return err
	},
	"release shared": func(t *testing.T, s *syncStore) error {
		t.Helper()
		_, err := s.Release(t.Context(), sharedRequest(0))
		return err
	},
	"commit":  ending(store.Commit),
	"seal":    ending(store.Seal),
	"abort":   ending(store.Abort),
	"resolve": resolving(store.Forget),
	"answer":  resolving(store.ResolveAnswered),
	"outcome": func(t *testing.T, s *syncStore) error {
		t.Helper()
		_, err := s.Outcome(t.Context(), storetest.Request(""))
		return err
	},
}

// sharedRequest returns a request for one of two permits.
func sharedRequest(fences int) storetest.AnyRequest {
	r := storetest.Request(storetest.MePermit1)
	r.Limit, r.Fences = 2, fences
	return r
}

func resolving(resolution store.Resolution) func(*testing.T, *syncStore) error {
	return func(t *testing.T, s *syncStore) error {
		t.Helper()
		r := storetest.Request("")
		r.Seen, r.Resolution, r.Keep, r.Record = nameOf(storetest.Bob1), resolution, storetest.Keep, []byte(storetest.Record)
		_, err := s.Resolve(t.Context(), r)
		return err
	}
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

// dump returns all keys of the server with their values and times of expiry.
func dump(t *testing.T, rdb *redis.Client) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		expiry := rdb.Do(t.Context(), "pexpiretime", key).String()
		all[key] = rdb.Dump(t.Context(), key).Val() + expiry
	}
	return all
}

// checkRefused fails the test unless the call gets a permanent fault with this text, and no key
// has changed.
func checkRefused(t *testing.T, rdb *redis.Client, call func(*testing.T, *syncStore) error, text string) {
	t.Helper()
	s := newStore(t, rdb)
	before := dump(t, rdb)
	err := call(t, s)
	var fault *store.Fault
	if !errors.As(err, &fault) || fault.Temporary || fault.Unknown || !strings.Contains(err.Error(), text) {
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

func TestKeyOfWrongTypeIsRefusedBeforeAnyWrite(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
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
	ran, over := storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: line, Record: runningRecord(storetest.Me1, "1")}, storetest.State{Value: storetest.Me1, TTL: storetest.Claim, Queue: line, Record: doneRecord(storetest.Bob1)}
	shared := storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Queue: line, Shared: leases{storetest.MePermit1: storetest.TTL, storetest.MeReader1: storetest.TTL}}
	const wrongType, noNumber = "WRONGTYPE", "no such number"
	tests := []struct {
		name, call string
		before     storetest.State
		damage     func(*testing.T)
		text       string
	}{
		{"lock", "enqueue", free, wrong(storetest.LockName), wrongType},
		{"lock", "nowait", free, wrong(storetest.LockName), wrongType},
		{"lock", "renew", free, wrong(storetest.LockName), wrongType},
		{"lock", "release", free, wrong(storetest.LockName), wrongType},
		{"lock", "rejoin", free, wrong(storetest.LockName), wrongType},

		{"queue, free", "enqueue", free, wrong(storetest.QueueName), wrongType},
		{"queue, held", "enqueue", held, wrong(storetest.QueueName), wrongType},
		{"queue, another's", "enqueue", others, wrong(storetest.QueueName), wrongType},
		{"queue, free", "nowait", free, wrong(storetest.QueueName), wrongType},
		{"queue", "renew", held, wrong(storetest.QueueName), wrongType},
		{"queue", "release", held, wrong(storetest.QueueName), wrongType},
		{"queue, another's", "release", others, wrong(storetest.QueueName), wrongType},
		{"queue", "rejoin", held, wrong(storetest.QueueName), wrongType},

		{"lock", "vote", free, wrong(storetest.LockName), wrongType},
		{"queue, free", "vote", storetest.State{}, wrong(storetest.QueueName), wrongType},
		{"queue, held", "vote", held, wrong(storetest.QueueName), wrongType},
		{"queue, another's", "vote", others, wrong(storetest.QueueName), wrongType},
		{"lock", "withdraw", held, wrong(storetest.LockName), wrongType},
		{"queue", "withdraw", held, wrong(storetest.QueueName), wrongType},

		{"fence, free", "enqueue", free, wrong(storetest.FenceName), wrongType},
		{"fence, held", "enqueue", held, wrong(storetest.FenceName), wrongType},
		{"fence, another's", "enqueue", others, wrong(storetest.FenceName), wrongType},
		{"fence, free", "nowait", free, wrong(storetest.FenceName), wrongType},
		{"fence", "renew", held, wrong(storetest.FenceName), wrongType},

		{"fence is a word", "enqueue", free, fence("abc"), noNumber},
		{"fence is empty", "enqueue", held, fence(""), noNumber},
		{"fence is negative", "enqueue", others, fence("-5"), noNumber},
		{"fence has an exponent", "renew", held, fence("1e3"), noNumber},
		{"fence has a fraction", "renew", held, fence("1.5"), noNumber},
		{"fence has a line break", "renew", held, fence("5\n"), noNumber},
		{"fence is too great", "renew", held, fence("9007199254740993"), noNumber},
		{"fence has 500 digits", "renew", held, fence(strings.Repeat("9", 500)), noNumber},

		{"lock", "shared", free, wrong(storetest.LockName), wrongType},
		{"queue", "shared", shared, wrong(storetest.QueueName), wrongType},
		{"set, free", "briefly shared", storetest.State{}, wrong(storetest.SharedName), wrongType},
		{"set, free with a queue", "briefly shared", free, wrong(storetest.SharedName), wrongType},
		{"set, shared", "briefly shared", shared, wrong(storetest.SharedName), wrongType},
		{"set, handed", "shared", storetest.State{Value: storetest.MePermit1, TTL: storetest.Claim, Queue: line}, wrong(storetest.SharedName), wrongType},
		{"fence", "shared", shared, fence("abc"), noNumber},
		{"set", "enqueue", shared, wrong(storetest.SharedName), wrongType},
		{"set", "release", shared, wrong(storetest.SharedName), wrongType},
		{"set", "release shared", shared, wrong(storetest.SharedName), wrongType},
		{"queue", "release shared", shared, wrong(storetest.QueueName), wrongType},
		{"set", "renew shared", shared, wrong(storetest.SharedName), wrongType},
		{"queue", "renew shared", shared, wrong(storetest.QueueName), wrongType},
		{"fence", "renew shared", shared, fence("1.5"), noNumber},

		{"lock, free", "begin", free, wrong(storetest.LockName), wrongType},
		{"queue, free", "begin", free, wrong(storetest.QueueName), wrongType},
		{"queue, a verdict", "begin", over, wrong(storetest.QueueName), wrongType},
		{"fence, held", "begin", held, wrong(storetest.FenceName), wrongType},
		{"fence, rerun", "rerun", storetest.State{Record: runningRecord(storetest.Bob1, "1")}, wrong(storetest.FenceName), wrongType},
		{"record, free", "begin", free, text, wrongType},
		{"record, held", "begin", held, text, wrongType},
		{"lock", "commit", ran, wrong(storetest.LockName), wrongType},
		{"queue", "commit", ran, wrong(storetest.QueueName), wrongType},
		{"record", "commit", held, text, wrongType},
		{"record, another's key", "seal", others, text, wrongType},
		{"record", "abort", held, text, wrongType},
		{"lock", "resolve", ran, wrong(storetest.LockName), wrongType},
		{"record", "resolve", free, text, wrongType},
	}
	for _, test := range tests {
		t.Run(test.call+" "+test.name, func(t *testing.T) {
			test.before.Put(t, rdb)
			test.damage(t)
			log := subscribeAs(t, rdb, storetest.Bob, storetest.Eve)
			checkRefused(t, rdb, calls[test.call], test.text)
			if hints := log.end(t, rdb); len(hints) > 0 {
				t.Errorf("hints %q", hints)
			}
		})
	}
}
