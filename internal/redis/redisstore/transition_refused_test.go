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

// calls are the transitions that run scripts. Those that can reserve fencing numbers do.
var calls = map[string]transition{
	"enqueue": asking(numbers(8)), "nowait": asking(withoutJoin, numbers(8)), "renew": renewing(numbers(8)),
	"apart": asking(apart, numbers(8)), "fresh": asking(fresh, numbers(8)), "release apart": releasing(apart), "rejoin apart": releasing(rejoins, apart),
	"release": release, "rejoin": rejoin, "vote": vote, "withdraw": withdrawAndRejoin,
	"begin": begin(numbers(8)), "rerun": begin(rerun, numbers(8)), "commit": finish(store.EndCommit), "seal": finish(store.EndDone), "abort": finish(store.EndAbort),
	"shared": asking(permit, numbers(8)), "briefly shared": asking(permit), "try shared": asking(permit, withoutHolder), "renew shared": renewing(permit, numbers(8)), "release shared": releasing(permit),
	"resolve": resolve, "answer": resolveAs(store.ResolveAnswered, storetest.Bob1), "outcome": readOutcome(storetest.Keep),
	"to a ticket": toTicket, "accept": asking(withTicket, numbers(1)),
}

// sharedRequest returns a request for one of two permits.
func sharedRequest(fences int) storetest.AnyRequest {
	return changed([]change{permit, numbers(fences)})
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
func checkRefused(t *testing.T, rdb *redis.Client, call transition, text string) {
	t.Helper()
	s := newStore(t, rdb)
	before := dump(t, rdb)
	_, err := call(t, s)
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
	const line = "| B1 A1 C1"
	const free, held, others, ran, over = line, "A1 claim " + line, "B2 claim | C1", "A1 claim " + line + " | R A1 1", "A1 claim " + line + " | D B1"
	const shared = "shared ttl " + line + " | | A1/2=ttl A1*=ttl"
	const noNumber = "no such number"
	tests := []struct {
		name, call string
		before     string
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
		{"queue, free", "fresh", free, wrong(storetest.QueueName), wrongType},
		{"queue, another's", "fresh", others, wrong(storetest.QueueName), wrongType},
		{"queue, held", "apart", held, wrong(storetest.QueueName), wrongType},
		{"queue", "release apart", held, wrong(storetest.QueueName), wrongType},
		{"queue", "rejoin apart", held, wrong(storetest.QueueName), wrongType},

		{"lock", "to a ticket", held, wrong(storetest.LockName), wrongType},
		{"lock", "accept", held, wrong(storetest.LockName), wrongType},
		{"queue", "accept", "D1 ttl " + line, wrong(storetest.QueueName), wrongType},
		{"fence", "accept", "D1 ttl " + line, wrong(storetest.FenceName), wrongType},
		{"fence is a word", "accept", "D1 ttl " + line, fence("abc"), noNumber},

		{"lock", "vote", free, wrong(storetest.LockName), wrongType},
		{"queue, free", "vote", "", wrong(storetest.QueueName), wrongType},
		{"queue, held", "vote", held, wrong(storetest.QueueName), wrongType},
		{"queue, another's", "vote", others, wrong(storetest.QueueName), wrongType},
		{"lock", "withdraw", held, wrong(storetest.LockName), wrongType},
		{"queue", "withdraw", held, wrong(storetest.QueueName), wrongType},

		{"fence, free", "enqueue", free, wrong(storetest.FenceName), wrongType},
		{"fence, held", "enqueue", held, wrong(storetest.FenceName), wrongType},
		{"fence, another's", "enqueue", others, wrong(storetest.FenceName), wrongType},
		{"fence, free", "nowait", free, wrong(storetest.FenceName), wrongType},
		{"fence, held", "apart", held, wrong(storetest.FenceName), wrongType},
		{"fence, another's", "fresh", others, wrong(storetest.FenceName), wrongType},
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
		{"set, free", "briefly shared", "", wrong(storetest.SharedName), wrongType},
		{"set, free", "try shared", "", wrong(storetest.SharedName), wrongType},
		{"set, shared", "try shared", shared, wrong(storetest.SharedName), wrongType},
		{"queue, free", "try shared", "", wrong(storetest.QueueName), wrongType},
		{"set, free with a queue", "briefly shared", free, wrong(storetest.SharedName), wrongType},
		{"set, shared", "briefly shared", shared, wrong(storetest.SharedName), wrongType},
		{"set, handed", "shared", "A1/2 claim " + line, wrong(storetest.SharedName), wrongType},
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
		{"fence, rerun", "rerun", "| | R B1 1", wrong(storetest.FenceName), wrongType},
		{"lock", "commit", ran, wrong(storetest.LockName), wrongType},
		{"queue", "commit", ran, wrong(storetest.QueueName), wrongType},
		{"lock", "resolve", ran, wrong(storetest.LockName), wrongType},
	}
	for _, test := range tests {
		t.Run(test.call+" "+test.name, func(t *testing.T) {
			stateOf(test.before).Put(t, rdb)
			test.damage(t)
			log := subscribeAs(t, rdb, storetest.Bob, storetest.Eve)
			checkRefused(t, rdb, calls[test.call], test.text)
			if hints := log.end(t, rdb); len(hints) > 0 {
				t.Errorf("hints %q", hints)
			}
		})
	}
}
