package core_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func testRecordLivesForItsRetention(t *testing.T, servers *deployment) {
	t.Helper()
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb)
	short := locks.With(core.WithRetention(time.Minute))
	noError(t, begin(t, locks, "day").Commit(t.Context(), nil))
	if ttl := rdb.PTTL(t.Context(), servers.companion("i:day", "r")).Val(); ttl < 24*time.Hour-time.Minute || ttl > 24*time.Hour {
		t.Errorf("kept for %v", ttl)
	}
	noError(t, begin(t, short, "short").Commit(t.Context(), []byte("answer")))
	if ttl := rdb.PTTL(t.Context(), servers.companion("i:short", "r")).Val(); ttl < 30*time.Second || ttl > time.Minute {
		t.Errorf("kept for %v", ttl)
	}
	wantReplay(t, locks, "short", "answer")
	if !rdb.PExpire(t.Context(), servers.companion("i:short", "r"), time.Millisecond).Val() { // as if the retention were over
		t.Error("the record is gone")
	}
	suite.Eventually(t, "the record expires", func() bool {
		return rdb.Exists(t.Context(), servers.companion("i:short", "r")).Val() == 0
	})
	_ = begin(t, locks, "short").Abort(t.Context())
}

// The retention is shorter than the TTL. The record must not expire before the lease.
func testRecordLivesAsLongAsTheLease(t *testing.T, servers *deployment) {
	t.Helper()
	rdb := servers.Client(t)
	locks := servers.newLocker(t, rdb, core.WithRetention(time.Second), core.WithTTL(time.Minute))
	a := begin(t, locks, "k")
	for _, when := range []string{"while the attempt runs", "after its commit"} {
		if ttl := rdb.PTTL(t.Context(), servers.companion("i:k", "r")).Val(); ttl < 50*time.Second || ttl > time.Minute {
			t.Errorf("%s the record is kept for %v", when, ttl)
		}
		noError(t, a.Commit(t.Context(), nil)) // does nothing in the second round
	}
}

func testDuplicatesWaitForTheAnswer(t *testing.T, servers *deployment) {
	t.Helper()
	proxy := servers.Proxy(t)
	var events recorder
	opts := []core.Option{core.WithWait(20 * time.Second), core.WithObserver(events.record)}
	here := servers.newLocker(t, servers.Client(t, redistest.Through(proxy)), opts...)
	there, third := servers.newLocker(t, servers.Client(t), opts...), servers.newLocker(t, servers.Client(t), opts...)
	a := begin(t, here, "k")
	proxy.ResetCommands()
	var group sync.WaitGroup
	var replayed atomic.Int32
	for _, locks := range []*core.Locker{here, there, third} {
		for range 20 {
			group.Go(func() {
				a, err := locks.Begin(t.Context(), "k", []byte("f"))
				if err != nil {
					t.Error(err)
					return
				}
				if record, done := a.Replay(); done && string(record) == "answer" {
					replayed.Add(1)
				}
			})
		}
	}
	suite.Eventually(t, "all duplicates wait", func() bool { return len(events.of(core.Waiting)) == 60 })
	noError(t, a.Commit(t.Context(), []byte("answer")))
	group.Wait()
	if replayed.Load() != 60 {
		t.Errorf("%d of 60 got the answer", replayed.Load())
	}
	if n := len(events.of(core.Replayed)); n != 60 {
		t.Errorf("%d events of kind Replayed", n)
	}
	commands := proxy.Commands()
	// On a busy machine there may be a renewal or two.
	if n := commands["EVALSHA"] + commands["EVAL"]; n > 6 {
		t.Errorf("the process of the attempt sent %v", commands)
	}
}

// An attempt takes one command before the handler and one after it. A replay takes one.
func testRoundTripsOfAnAttempt(t *testing.T, servers *deployment) {
	t.Helper()
	proxy := servers.Proxy(t)
	locks := servers.newLocker(t, servers.Client(t, redistest.Through(proxy)), withoutResend()...)
	noError(t, begin(t, locks, "{k}warm").Commit(t.Context(), nil)) // loads the scripts on the master of the keys
	wantCommands := func(what string, want int) {
		t.Helper()
		n := 0
		for _, times := range proxy.Commands() {
			n += times
		}
		if n != want {
			t.Errorf("%s: commands %v, want %d", what, proxy.Commands(), want)
		}
		proxy.ResetCommands()
	}
	proxy.ResetCommands()
	a := begin(t, locks, "{k}run")
	wantCommands("begin", 1)
	noError(t, a.Commit(t.Context(), []byte("answer")))
	wantCommands("commit", 1)
	wantReplay(t, locks, "{k}run", "answer")
	wantCommands("replay", 1)
}

func testAttemptThatDied(t *testing.T, servers *deployment) {
	t.Helper()
	dead := core.Must(core.New(servers.Client(t), core.WithPrefix(servers.prefix), core.WithTTL(200*time.Millisecond), core.WithWait(20*time.Second)))
	begin(t, dead, "k")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = dead.Close(ended)
	locks := servers.newLocker(t, servers.Client(t), core.WithWait(20*time.Second))
	wantError(t, errorOf(locks.Begin(t.Context(), "k", []byte("f"))), core.ErrInterrupted)
	again := begin(t, locks.With(core.WithInterrupted(core.Rerun)), "k")
	if again.Number() != 2 {
		t.Errorf("attempt %d", again.Number())
	}
	wantError(t, forget(t, locks, "k"), core.ErrBusy)
	noError(t, again.Interrupt(t.Context()))
	noError(t, forget(t, locks, "k"))
	a := begin(t, locks, "k")
	if a.Number() != 1 {
		t.Errorf("attempt %d after it was resolved", a.Number())
	}
	noError(t, a.Commit(t.Context(), []byte("answer")))
	wantError(t, forget(t, locks, "k"), core.ErrChanged)
	wantReplay(t, locks, "k", "answer")
}
