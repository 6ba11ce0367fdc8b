package redisstore

import (
	"context"
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

// both are the replicas of a master of redistest. They have longer than a busy machine
// takes.
var both = command.Replicas{Count: 2, Timeout: 2 * time.Second}

// withTimeout gives replicas another time: where one of them is away, that passes in vain.
func withTimeout(r command.Replicas, timeout time.Duration) command.Replicas {
	r.Timeout = timeout
	return r
}

// newDurable returns a store whose grants replicas have to acknowledge.
func newDurable(t *testing.T, rdb redis.UniversalClient, replicas command.Replicas) *syncStore {
	t.Helper()
	s, err := New(rdb, "p:", storetest.Me, replicas)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &syncStore{Store: s}
}

// startReplicated runs a master with two replicas. Who tests it may use WAIT.
func startReplicated(t *testing.T) *redistest.Sentinels {
	t.Helper()
	sentinels := redistest.StartSentinel(t)
	for _, server := range sentinels.Servers() {
		server.Grant(redistest.ReplicaRights)
	}
	return sentinels
}

// An act is a transition that replicas have to acknowledge, or need not.
type act struct {
	name   string
	before storetest.State
	// do reports whether it was granted.
	do    func(t *testing.T, s *syncStore) (granted bool, err error)
	waits bool
}

var acts = []act{
	{name: "take", waits: true, do: takeIt},
	{name: "take again", waits: true, before: storetest.State{Value: storetest.Me1, TTL: time.Hour}, do: takeIt},
	{name: "enqueue", waits: true, do: enqueueIt},
	{name: "confirm a hand-off", waits: true, before: storetest.State{Value: storetest.Me1, TTL: storetest.Claim}, do: enqueueIt},
	{name: "confirm what needs no longer life", waits: true, before: storetest.State{Value: storetest.Me1, TTL: time.Hour}, do: enqueueIt},
	{name: "renew", waits: true, before: storetest.State{Value: storetest.Me1, TTL: time.Hour}, do: func(t *testing.T, s *syncStore) (bool, error) {
		t.Helper()
		got, err := s.Renew(t.Context(), storetest.Request(storetest.Me1))
		return got.Held, err
	}},
	{name: "begin", waits: true, do: beginIt},
	{name: "begin again", waits: true, before: storetest.State{Value: storetest.Me1, TTL: time.Hour, Record: runs(storetest.Me1, "1")}, do: beginIt},
	{name: "commit", waits: true, before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1")}, do: finishIt(store.Commit)},
	{name: "commit again", waits: true, before: storetest.State{Record: done(storetest.Me1)}, do: finishIt(store.Commit)},
	{name: "seal", waits: true, before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1")}, do: finishIt(store.Seal)},

	{name: "abort", before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1")}, do: finishIt(store.Abort)},
	{name: "release", before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, do: func(t *testing.T, s *syncStore) (bool, error) {
		t.Helper()
		got, err := s.Release(t.Context(), storetest.Request(storetest.Me1))
		return got.Status == store.Freed, err
	}},
	{name: "release and rejoin", before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL}, do: func(t *testing.T, s *syncStore) (bool, error) {
		t.Helper()
		r := storetest.Request(storetest.Me1)
		r.Rejoin = storetest.Me2
		got, err := s.Release(t.Context(), r)
		return got.Status == store.Kept || got.Status == store.Unsure, err
	}},
	{name: "resolve", before: storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1")}, do: func(t *testing.T, s *syncStore) (bool, error) {
		t.Helper()
		return s.Resolve(t.Context(), storetest.Request(storetest.Me1))
	}},
}

func takeIt(t *testing.T, s *syncStore) (bool, error) {
	t.Helper()
	got, err := s.Take(t.Context(), storetest.Request(storetest.Me1))
	return got.Granted, err
}

func enqueueIt(t *testing.T, s *syncStore) (bool, error) {
	t.Helper()
	got, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me1))
	return got.Granted, err
}

func beginIt(t *testing.T, s *syncStore) (bool, error) {
	t.Helper()
	got, err := s.Enqueue(t.Context(), storetest.AttemptRequest(storetest.Me1))
	return got.Granted, err
}

func finishIt(ending store.Ending) func(t *testing.T, s *syncStore) (bool, error) {
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

// writes are the commands by which the scripts write.
var writes = []string{"SET", "PEXPIRE", "HSET", "DEL"}

// What WAIT counts is what its own connection has written.
func TestEachGrantIsWrittenAndAskedForOnItsConnection(t *testing.T) {
	t.Parallel()
	sentinels := startReplicated(t)
	master := sentinels.Master()
	observer, s := master.Client(t), newDurable(t, sentinels.Client(t), both)
	none := newStoreOf(t, sentinels.Client(t), storetest.Me)
	heard := monitor(t, master)
	for _, act := range acts {
		t.Run(act.name, func(t *testing.T) {
			for range 2 { // the scripts are known the second time
				act.before.Put(t, observer)
				heard()
				if granted, err := act.do(t, s); !granted || err != nil {
					t.Fatalf("%v, %v", granted, err)
				}
			}
			all := heard()
			sent, waits, wrote := named(all, "EVALSHA"), named(all, "WAIT"), named(all, writes...)
			switch {
			case len(sent) != 1 || len(named(all, "SET", "EVAL")) > len(wrote):
				t.Errorf("sent %v", all)
			case !act.waits && len(waits) != 0:
				t.Errorf("replicas are asked: %v", all)
			case act.waits && (len(waits) != 1 || waits[0].from != sent[0].from || len(wrote) == 0):
				t.Errorf("replicas are not asked for what was written: %v", all)
			}

			act.before.Put(t, observer)
			heard()
			if granted, err := act.do(t, none); !granted || err != nil {
				t.Errorf("where no replicas are asked: %v, %v", granted, err)
			}
			if waits := named(heard(), "WAIT"); len(waits) != 0 {
				t.Errorf("replicas are asked where none are wanted: %v", waits)
			}
		})
	}
}

//faults:row 18
func TestTooFewReplicasAreAFaultOfWhatWasGranted(t *testing.T) {
	t.Parallel()
	sentinels := startReplicated(t)
	observer := sentinels.Master().Client(t)
	s := newDurable(t, sentinels.Client(t), withTimeout(both, 250*time.Millisecond)) // which the other one has, too
	replica := sentinels.Replicas()[0]
	const oneHas, noneHas = "only 1 of 2 replicas have acknowledged it", "only 0 of 2 replicas have acknowledged it"
	told := make(map[string]bool)
	for _, act := range acts {
		t.Run(act.name, func(t *testing.T) {
			act.before.Put(t, observer)
			replica.Pause()
			granted, err := act.do(t, s)
			replica.Resume()
			var fault *store.Fault
			switch {
			case !act.waits:
				if !granted || err != nil {
					t.Errorf("%v, %v; nobody has to acknowledge that", granted, err)
				}
			case granted || !errors.As(err, &fault) || !fault.Temporary || !fault.Unknown:
				t.Errorf("%v, %#v", granted, err)
			case err.Error() != oneHas && err.Error() != noneHas: // now and then the other one is late on a busy machine
				t.Errorf("it says %q", err)
			default:
				told[err.Error()] = true
			}
			if !act.waits {
				return
			}
			suite.Eventually(t, "it is acknowledged by the same token", func() bool {
				granted, err := act.do(t, s)
				return granted && err == nil
			})
		})
	}
	if told[noneHas] && !told[oneHas] {
		t.Errorf("it always says %q", noneHas)
	}
}

// A refusal says what the server has found, and writes nothing.
func TestRefusalsNeedNoReplicas(t *testing.T) {
	t.Parallel()
	sentinels := startReplicated(t)
	observer, s := sentinels.Master().Client(t), newDurable(t, sentinels.Client(t), withTimeout(both, 50*time.Millisecond))
	for _, replica := range sentinels.Replicas() {
		replica.Pause()
		t.Cleanup(replica.Resume)
	}
	held := storetest.State{Value: storetest.Bob1, TTL: storetest.TTL, Record: runs(storetest.Bob1, "1")}
	held.Put(t, observer)
	if got, err := s.Take(t.Context(), storetest.Request(storetest.Me1)); err != nil || got.Holder != storetest.Bob1 {
		t.Errorf("take: %+v, %v", got, err)
	}
	if got, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me1)); err != nil || got.Holder != storetest.Bob1 {
		t.Errorf("enqueue: %+v, %v", got, err)
	}
	if got, err := s.Renew(t.Context(), storetest.Request(storetest.Me1)); err != nil || got.Held {
		t.Errorf("renew: %+v, %v", got, err)
	}
	if got, err := s.Enqueue(t.Context(), storetest.AttemptRequest(storetest.Me1)); err != nil || !got.Running {
		t.Errorf("begin: %+v, %v", got, err)
	}
	r := storetest.AttemptRequest(storetest.Me1)
	r.Ending, r.Record = store.Commit, []byte(storetest.Record)
	if got, err := s.Release(t.Context(), r); err != nil || got.Record != store.NotStored {
		t.Errorf("commit: %+v, %v", got, err)
	}
	rejoins := storetest.Request(storetest.Me1)
	rejoins.Rejoin = storetest.Me2
	if got, err := s.Release(t.Context(), rejoins); err != nil || got.Status != store.NotHeld {
		t.Errorf("rejoin: %+v, %v", got, err)
	}
	storetest.State{Record: done(storetest.Bob1)}.Put(t, observer)
	if got, err := s.Enqueue(t.Context(), storetest.AttemptRequest(storetest.Me1)); err != nil || got.Verdict != store.Done {
		t.Errorf("begin what is done: %+v, %v", got, err)
	}
}

// No release waits for replicas, so the one that keeps the key asks for itself.
func TestAKeyThatIsKeptIsUnsureUntilReplicasAreAsked(t *testing.T) {
	t.Parallel()
	sentinels := startReplicated(t)
	observer, s := sentinels.Master().Client(t), newDurable(t, sentinels.Client(t), both)
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

// blocked is a client of CLIENT LIST that waits for replicas.
var blocked = regexp.MustCompile(`flags=b\b.* cmd=wait `)

// A release is told while a grant waits for replicas.
func TestAReleaseDoesNotStandBehindReplicas(t *testing.T) {
	t.Parallel()
	sentinels := startReplicated(t)
	observer := sentinels.Master().Client(t)
	s := newDurable(t, sentinels.Client(t, func(o *redis.FailoverOptions) { o.ReadTimeout = storetest.LongBound }), withTimeout(both, storetest.Patience))
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Record: runs(storetest.Me1, "1")}.Put(t, observer)
	for _, replica := range sentinels.Replicas() {
		replica.Pause()
	}
	waiting := make(chan error, 3)
	other, third, renewed := storetest.Request(storetest.Me2), storetest.AttemptRequest(storetest.Me2), storetest.Request(storetest.Me1)
	other.Key, third.Key = "other", "third"
	other.Bound, third.Bound, renewed.Bound = storetest.LongBound, storetest.LongBound, storetest.LongBound
	s.Store.Take(other.Take(), func(_ store.Answer, err error) { waiting <- err })
	s.Store.Enqueue(third.Enqueue(), func(_ store.Answer, err error) { waiting <- err })
	s.Store.Renew(renewed.Renew(), func(_ store.Renewal, err error) { waiting <- err })
	suite.Eventually(t, "they are at the server", func() bool {
		return len(blocked.FindAllString(observer.ClientList(t.Context()).Val(), -1)) == 3
	})

	r := storetest.AttemptRequest(storetest.Me1)
	r.Ending = store.Abort
	if got, err := s.Release(t.Context(), r); err != nil || got.Status != store.Freed {
		t.Errorf("abort: %+v, %v", got, err)
	}
	if got, err := s.Release(t.Context(), storetest.Request(storetest.Me1)); err != nil || got.Status != store.NotHeld {
		t.Errorf("release: %+v, %v", got, err)
	}
	select {
	case err := <-waiting:
		t.Errorf("a grant was told before: %v", err)
	default:
	}
	for _, replica := range sentinels.Replicas() {
		replica.Resume()
	}
	for range 3 {
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	}
}

// A reply that is late since replicas are is not taken for a lost one.
func TestWhatWaitsForReplicasIsSentOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ wait, bound time.Duration }{
		"its caller could lead, for a shorter time": {200 * time.Millisecond, 5 * time.Second},
		"it waits for more than half of its bound":  {2400 * time.Millisecond, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			server.Grant(redistest.ReplicaRights)
			proxy := redistest.NewProxy(t, server.Addr())
			s := newDurable(t, proxy.Client(t, storetest.Deadlines, storetest.LongReads), command.Replicas{Count: 1, Timeout: test.wait})
			if err := server.Client(t).ScriptLoad(t.Context(), s.scripts.Take.Source.(string)).Err(); err != nil {
				t.Fatal(err)
			}
			r := storetest.Request(storetest.Me1)
			r.Inline, r.Bound = true, test.bound
			begun := time.Now()
			_, err := s.Take(t.Context(), r)
			late := time.Since(begun) >= (test.bound+test.wait)/2 // and was sent again
			var short *command.ShortfallError
			if !errors.As(err, &short) {
				t.Errorf("got %v", err)
			}
			if n := proxy.Commands()["EVALSHA"]; n != 1 && !late {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}

// What is sent again writes again, so that the second WAIT speaks of it too.
//
//faults:row 1, 10: where replicas have to acknowledge it
func TestALostReplyIsSurvivedWithReplicas(t *testing.T) {
	t.Parallel()
	sentinels := startReplicated(t)
	master := sentinels.Master()
	observer, heard := master.Client(t), monitor(t, master)
	proxy := redistest.NewProxy(t, master.Addr())
	s := newDurable(t, proxy.Client(t), both)
	for _, script := range []script.Script{s.scripts.Take, s.scripts.Enqueue, s.scripts.Renew, s.scripts.Begin, s.scripts.Finish} {
		if err := observer.ScriptLoad(t.Context(), script.Source.(string)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, lost := range []string{"EVALSHA", "WAIT"} {
		for _, act := range slices.DeleteFunc(slices.Clone(acts), func(a act) bool { return !a.waits }) {
			t.Run(act.name+", "+lost, func(t *testing.T) {
				act.before.Put(t, observer)
				heard()
				dropped := proxy.DropReply(redistest.Named(lost), redistest.CloseConn)
				if granted, err := act.do(t, s); !granted || err != nil {
					t.Fatalf("%v, %v", granted, err)
				}
				<-dropped
				all := heard()
				sent := named(all, "EVALSHA")
				if len(sent) != 2 {
					t.Fatalf("sent %d times: %v", len(sent), all)
				}
				again := all[slices.Index(all, sent[1]):]
				if !slices.Contains(again, ran{sent[1].from, "WAIT"}) || len(named(again, writes...)) == 0 {
					t.Errorf("the second send is not acknowledged by itself: %v", all)
				}
			})
		}
	}
}

func TestWhatWaitIsRefusedIsSaid(t *testing.T) {
	t.Parallel()
	sentinels := redistest.StartSentinel(t)
	observer := sentinels.Master().Client(t)
	if err := observer.ACLSetUser(t.Context(), "alice", "on", "nopass", "~*", "&*", "+@all", "-wait").Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: sentinels.Master().Addr(), Username: "alice", Password: "any"})
	t.Cleanup(func() { _ = rdb.Close() })
	s := newDurable(t, rdb, both)
	for _, act := range acts {
		act.before.Put(t, observer)
		granted, err := act.do(t, s)
		var fault *store.Fault
		switch {
		case !act.waits:
			if !granted || err != nil {
				t.Errorf("%s: %v, %v", act.name, granted, err)
			}
		case granted || !errors.As(err, &fault) || fault.Temporary || !fault.Unknown || !strings.HasPrefix(err.Error(), "NOPERM"):
			t.Errorf("%s: %v, %#v", act.name, granted, err)
		case strings.Contains(err.Error(), "alice"):
			t.Errorf("%s: %v tells too much", act.name, err)
		}
	}
}

// Durable scripts answer as the others do.
func TestDurableScriptsAreTheSameTransitions(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	for _, test := range slices.Concat(transitions, ofAttempts) {
		t.Run(test.name, func(t *testing.T) {
			s := newStore(t, rdb)
			s.scripts = script.New(true)
			test.check(t, rdb, s)
		})
	}
}

func TestAClientThatCannotAskReplicasIsRefused(t *testing.T) {
	t.Parallel()
	server := redis.NewClient(&redis.Options{ReadTimeout: 149 * time.Millisecond})
	servers := redis.NewClusterClient(&redis.ClusterOptions{ReadTimeout: 150 * time.Millisecond})
	replicas := withTimeout(both, 50*time.Millisecond)
	endless := redis.NewClient(&redis.Options{ReadTimeout: -1})
	t.Cleanup(func() { _, _, _ = server.Close(), servers.Close(), endless.Close() })
	for name, test := range map[string]struct {
		rdb  redis.UniversalClient
		says string // "" if it will do
	}{
		"a wrapper that hides what it wraps":   {opaqueWrapper{endless}, "does not show what it wraps"},
		"a server, no time to read":            {server, "ReadTimeout"},
		"a cluster, just enough time to read":  {servers, ""},
		"a cluster, wrapped":                   {clusterWrapper{servers}, ""},
		"a server, without a limit to reading": {endless, ""},
	} {
		err := command.CheckReplicas(test.rdb, replicas)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
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
