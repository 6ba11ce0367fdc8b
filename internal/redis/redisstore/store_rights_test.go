package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Without the right to publish, no waiter gets a hint, but the transitions are right.
func TestTransitionsWithoutRightToPublish(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{"the command": "-publish", "the channels": "resetchannels"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Reuse(t)
			rdb := server.Client(t)
			if err := rdb.Do(t.Context(), "acl", "setuser", "default", rule).Err(); err != nil {
				t.Fatal(err)
			}
			s := newStore(t, rdb)
			for _, test := range []struct {
				do                  transition
				before, want, after string
			}{
				{enqueue, "B1 ttl", "by B1, left ttl", "B1 ttl | A1"},
				{release, "A1 ttl | B1", "freed", ""},
				{begin(), "B1 ttl", "by B1, left ttl", "B1 ttl | A1"},
				{finish(store.EndCommit), "A1 ttl | B1 | R A1 1", "freed, stored", "| | D A1"},
			} {
				stateOf(test.before).Put(t, rdb)
				got, want := test.do.run(t, s), outcomeOfText(test.want)
				if got.round(want); got != want {
					t.Errorf("%q: got %+v, want %s", test.before, got, test.want)
				}
				stateOf(test.after).Check(t, rdb)
			}
		})
	}
}

// A script does not fail if the user lacks the right to the other kind of message. The waiter
// of the other kind loses its place then.
func TestRightToOneKindOfMessageIsEnough(t *testing.T) {
	t.Parallel()
	for mode, missing := range map[string]string{"P": "-spublish", "S": "-publish", "M": "-publish"} {
		t.Run(mode+missing, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Start(t, "--user", "default", "on", "nopass", "~*", "&*", "+@all", missing).Client(t)
			s := newStore(t, rdb)
			s.setMode(mode)
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Eve1, storetest.Bob1}}.Put(t, rdb)
			log := subscribeInMode(t, rdb, strings.Replace(mode, "M", "S", 1), storetest.Bob)
			if got := release.run(t, s); got.status != store.Handed {
				t.Errorf("%+v", got)
			}
			storetest.State{Value: storetest.Bob1, TTL: storetest.Claim}.Check(t, rdb)
			for _, conn := range log.conns {
				_ = conn.Close()
			}
		})
	}
}

// A script that fails midway, because the user lacks a right, leaves no shared lease that
// never ends.
func TestSharedLeaseWithoutRightsEnds(t *testing.T) {
	t.Parallel()
	token := store.NewToken(storetest.Me, store.Unlimited, 1)
	for _, test := range []struct {
		name, missing string
		marked        bool  // the marker is there, although somebody has deleted its set
		queue         []any // the tokens in the queue
		fences        int
		granted       bool
	}{
		{"short form", "-pexpireat", false, nil, 0, true}, // the first lease of a phase needs no such right
		{"long form", "-pexpireat", false, nil, 1, false},
		{"set was deleted", "-pexpireat", true, nil, 0, false},
		{"from the queue", "-lrange", false, []any{token, storetest.Bob1}, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Reuse(t).Client(t)
			if err := rdb.Do(t.Context(), "acl", "setuser", "default", test.missing).Err(); err != nil {
				t.Fatal(err)
			}
			if test.marked {
				if err := rdb.Set(t.Context(), "p:k", "shared 0 - 0", time.Minute).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if len(test.queue) > 0 {
				if err := rdb.RPush(t.Context(), "{p:k}:q", test.queue...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			r := storetest.Request(token)
			r.Limit, r.Fences = store.Unlimited, test.fences
			if got, err := newStore(t, rdb).Enqueue(t.Context(), r); got.Granted != test.granted || (err == nil) != test.granted {
				t.Errorf("enqueue: %+v, %v", got, err)
			}
			if ttl, err := rdb.PTTL(t.Context(), "{p:k}:s").Result(); err != nil || ttl <= 0 {
				t.Errorf("the leases have the TTL %v, %v", ttl, err)
			}
		})
	}
}
