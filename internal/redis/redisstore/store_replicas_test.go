package redisstore

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The subtests are serial, because they share the servers and the key "k".
func TestStoreWithReplicas(t *testing.T) {
	t.Parallel()
	sentinels := startReplicated(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *redistest.Sentinels)
	}{
		{"a grant writes and waits on one connection", testGrantWritesAndWaitsOnOneConnection},
		{"refusals do not wait for replicas", testRefusalsDoNotWaitForReplicas},
		{"a kept lock is unsure until replicas acknowledge", testKeptLockIsUnsureUntilReplicasAcknowledge},
		{"a release does not wait for grants that wait for replicas", testReleaseDoesNotWaitForGrantsThatWaitForReplicas},
		{"a refused WAIT is a permanent fault", testRefusedWaitIsPermanentFault},
		{"WAIT at a replica is a temporary fault", testWaitAtReplicaIsTemporaryFault},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, sentinels) })
	}
}

// WAIT counts only writes of its own connection. So each grant must write, and WAIT must follow
// on the same connection.
func testGrantWritesAndWaitsOnOneConnection(t *testing.T, sentinels *redistest.Sentinels) {
	t.Helper()
	master := sentinels.Master()
	observer, s := master.Client(t), newReplicatedStore(t, sentinels.Client(t), twoReplicas)
	none := newStoreOf(t, sentinels.Client(t), storetest.Me)
	newCommands := monitor(t, master)
	for _, c := range replicatedCases {
		t.Run(c.name, func(t *testing.T) {
			for range 2 { // the first time the script may be unknown to the server
				stateOf(c.before).Put(t, observer)
				newCommands()
				if err := c.run(t, s); err != nil {
					t.Fatal(err)
				}
			}
			all := newCommands()
			sent, waits, wrote := named(all, "EVALSHA"), named(all, "WAIT"), named(all, writes...)
			switch {
			case len(sent) != 1 || len(named(all, "SET", "EVAL")) > len(wrote):
				t.Errorf("sent %v", all)
			case !c.waits && len(waits) != 0:
				t.Errorf("WAIT was sent: %v", all)
			case c.waits && (len(waits) != 1 || waits[0].from != sent[0].from || len(wrote) == 0):
				t.Errorf("no write and WAIT on the connection of the script: %v", all)
			}

			stateOf(c.before).Put(t, observer)
			newCommands()
			if err := c.run(t, none); err != nil {
				t.Errorf("without replicas: %v", err)
			}
			if waits := named(newCommands(), "WAIT"); len(waits) != 0 {
				t.Errorf("without replicas, WAIT was sent: %v", waits)
			}
		})
	}
}

func TestGrantWithTooFewReplicasFails(t *testing.T) {
	t.Parallel()
	sentinels := startReplicated(t)
	observer := sentinels.Master().Client(t)
	s := newReplicatedStore(t, sentinels.Client(t), withTimeout(twoReplicas, 250*time.Millisecond)) // the timeout of the replica that is not paused, too
	replica := sentinels.Replicas()[0]
	const oneHas, noneHas = "only 1 of 2 replicas have acknowledged it", "only 0 of 2 replicas have acknowledged it"
	texts := make(map[string]bool)
	for i, c := range replicatedCases {
		t.Run(c.name, func(t *testing.T) {
			if i%4 > 0 {
				suite.Full(t, "repeats the test with another command")
			}
			stateOf(c.before).Put(t, observer)
			replica.Pause()
			err := c.run(t, s)
			replica.Resume()
			var fault *store.Fault
			switch {
			case !c.waits:
				if err != nil {
					t.Errorf("%v; no replica has to acknowledge that", err)
				}
			case !errors.As(err, &fault) || !fault.Temporary || !fault.Unknown:
				t.Errorf("got %#v", err)
			case err.Error() != oneHas && err.Error() != noneHas: // on a busy machine the other replica may need more than the timeout
				t.Errorf("got %q", err)
			default:
				texts[err.Error()] = true
			}
			if !c.waits {
				return
			}
			suite.Eventually(t, "a resend is acknowledged", func() bool {
				_, err := c.do(t, s)
				return err == nil
			})
		})
	}
	if texts[noneHas] && !texts[oneHas] {
		t.Errorf("every error was %q", noneHas)
	}
}

// A refusal writes nothing, so replicas do not acknowledge it.
func testRefusalsDoNotWaitForReplicas(t *testing.T, sentinels *redistest.Sentinels) {
	t.Helper()
	observer, s := sentinels.Master().Client(t), newReplicatedStore(t, sentinels.Client(t), withTimeout(twoReplicas, 50*time.Millisecond))
	for _, replica := range sentinels.Replicas() {
		replica.Pause()
		t.Cleanup(replica.Resume)
	}
	for _, test := range []struct {
		before string
		do     transition
		want   string
	}{
		{"B1 ttl", take, "by B1"},
		{"B1 ttl", enqueue, "by B1, left ttl"},
		{"B1 ttl", renew, "nothing"},
		{"B1 ttl", rejoin, "nothing"},
		{"B1 ttl | | R B1 1", begin(), "by B1, left ttl, running"},
		{"B1 ttl | | R B1 1", finish(store.EndCommit), "nothing"},
		{"| | D B1", begin(), "done, answer"},
	} {
		stateOf(test.before).Put(t, observer)
		got, want := test.do.run(t, s), outcomeOfText(test.want)
		if got.round(want); got != want {
			t.Errorf("%q: got %+v, want %s", test.before, got, test.want)
		}
	}
}

// A release does not wait for replicas. So the token that rejoined has to ask again before it
// holds the lock.
func testKeptLockIsUnsureUntilReplicasAcknowledge(t *testing.T, sentinels *redistest.Sentinels) {
	t.Helper()
	observer, s := sentinels.Master().Client(t), newReplicatedStore(t, sentinels.Client(t), twoReplicas)
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Put(t, observer)
	rejoins := storetest.Request(storetest.Me1)
	rejoins.Rejoin = storetest.Me2
	if got, err := s.Release(t.Context(), rejoins); err != nil || got.Status != store.Unsure {
		t.Errorf("%+v, %v", got, err)
	}
	storetest.State{Value: storetest.Me2, TTL: storetest.TTL}.Check(t, observer)
	if got, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me2)); err != nil || !got.Granted {
		t.Errorf("%+v, %v", got, err)
	}
}

// blocked matches a line of CLIENT LIST: a client that waits for replicas.
var blocked = regexp.MustCompile(`flags=b\b.* cmd=wait `)

func testReleaseDoesNotWaitForGrantsThatWaitForReplicas(t *testing.T, sentinels *redistest.Sentinels) {
	t.Helper()
	observer := sentinels.Master().Client(t)
	s := newReplicatedStore(t, sentinels.Client(t, func(o *redis.FailoverOptions) { o.ReadTimeout = storetest.LongBound }), withTimeout(twoReplicas, storetest.Patience))
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runningRecord(storetest.Me1, "1")}.Put(t, observer)
	for _, replica := range sentinels.Replicas() {
		replica.Pause()
		t.Cleanup(replica.Resume)
	}
	waiting := make(chan error, 3)
	other, third, renewed := storetest.Request(storetest.Me2), storetest.AttemptRequest(storetest.Me2), storetest.Request(storetest.Me1)
	other.Key, third.Key = "other", "third"
	other.Bound, third.Bound, renewed.Bound = storetest.LongBound, storetest.LongBound, storetest.LongBound
	s.Store.Take(other.Take(), func(_ store.Answer, err error) { waiting <- err })
	s.Store.Enqueue(third.Enqueue(), func(_ store.Answer, err error) { waiting <- err })
	s.Store.Renew(renewed.Renew(), func(_ store.Renewal, err error) { waiting <- err })
	suite.Eventually(t, "three clients wait for replicas", func() bool {
		return len(blocked.FindAllString(observer.ClientList(t.Context()).Val(), -1)) == 3
	})

	r := storetest.AttemptRequest(storetest.Me1)
	r.Ending = store.EndAbort
	if got, err := s.Release(t.Context(), r); err != nil || got.Status != store.Freed {
		t.Errorf("abort: %+v, %v", got, err)
	}
	if got, err := s.Release(t.Context(), storetest.Request(storetest.Me1)); err != nil || got.Status != store.NotHeld {
		t.Errorf("release: %+v, %v", got, err)
	}
	select {
	case err := <-waiting:
		t.Errorf("a grant ended while the replicas were paused: %v", err)
	default:
	}
	for _, replica := range sentinels.Replicas() {
		replica.Resume()
	}
	for range 3 {
		if err := suite.Receive(t, "each grant is answered", waiting); err != nil {
			t.Error(err)
		}
	}
}

func testRefusedWaitIsPermanentFault(t *testing.T, sentinels *redistest.Sentinels) {
	t.Helper()
	observer := sentinels.Master().Client(t)
	if err := observer.ACLSetUser(t.Context(), "alice", "on", "nopass", "~*", "&*", "+@all", "-wait").Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: sentinels.Master().Addr(), Username: "alice", Password: "any"})
	t.Cleanup(func() { _ = rdb.Close() })
	s := newReplicatedStore(t, rdb, twoReplicas)
	for _, c := range replicatedCases {
		stateOf(c.before).Put(t, observer)
		err := c.run(t, s)
		var fault *store.Fault
		switch {
		case !c.waits:
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case !errors.As(err, &fault) || fault.Temporary || !fault.Unknown || !strings.HasPrefix(err.Error(), "NOPERM"):
			t.Errorf("%s: %#v", c.name, err)
		case strings.Contains(err.Error(), "alice"):
			t.Errorf("%s: %v contains the name of the user", c.name, err)
		}
	}
}

// The scripts for stores with replicas do what the other scripts do.
func TestTransitionsOfScriptsForReplicas(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	for _, test := range slices.Concat(transitions, attemptTransitions) {
		t.Run(test.name, func(t *testing.T) {
			s := newStore(t, rdb)
			s.scripts = script.New(true)
			test.check(t, rdb, s)
		})
	}
}

func TestClientThatCannotWaitForReplicasIsRefused(t *testing.T) {
	t.Parallel()
	server := redis.NewClient(&redis.Options{ReadTimeout: 149 * time.Millisecond})
	servers := redis.NewClusterClient(&redis.ClusterOptions{ReadTimeout: 150 * time.Millisecond})
	replicas := withTimeout(twoReplicas, 50*time.Millisecond)
	endless := redis.NewClient(&redis.Options{ReadTimeout: -1})
	t.Cleanup(func() { _, _, _ = server.Close(), servers.Close(), endless.Close() })
	for name, test := range map[string]struct {
		rdb  redis.UniversalClient
		want string // part of the error; "" means none
	}{
		"a wrapper that hides what it wraps":   {opaqueWrapper{endless}, "does not show what it wraps"},
		"a server, no time to read":            {server, "ReadTimeout"},
		"a cluster, just enough time to read":  {servers, ""},
		"a cluster, wrapped":                   {clusterWrapper{servers}, ""},
		"a server, without a limit to reading": {endless, ""},
	} {
		err := command.CheckReplicas(test.rdb, replicas)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if s, refused := New(test.rdb, "p:", storetest.Me, replicas); (refused == nil) != (err == nil) || (s == nil) != (err != nil) {
			t.Errorf("%s: New: %v", name, refused)
		}
		if err := command.CheckReplicas(test.rdb, command.Replicas{}); err != nil {
			t.Errorf("%s, no replicas: %v", name, err)
		}
	}
}
