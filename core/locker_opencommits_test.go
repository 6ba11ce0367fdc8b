package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Redis is away for longer than the caller of Commit waits. The commit goes on, and copies in
// the process get the answer.
func TestCommitGoesOn(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]func(*redistest.Server){
		"redis comes back with its data": (*redistest.Server).RestartFromDisk,
		"redis comes back empty":         (*redistest.Server).Restart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--appendonly", "yes")
			var events recorder
			locks := newLocker(t, server.Client(t), core.WithObserver(events.record))
			key := adapter.Must(core.EndpointKey("POST", "/payments", "k"))
			attempt := begin(t, locks, key)
			server.Kill()
			wantError(t, attempt.Commit(t.Context(), []byte("answer")), core.ErrUnavailable)
			if open := locks.OpenCommits(); open.Count != 1 || open.Bytes <= len("answer") || open.Oldest <= 0 {
				t.Errorf("%+v", open)
			}
			wantReplay(t, locks, key, "answer")
			_, err := locks.Begin(t.Context(), key, []byte("g"))
			wantError(t, err, core.ErrUnavailable)
			restart(server)
			wantReplay(t, locks, key, "answer")
			suite.Eventually(t, "the commit is done", func() bool { return len(events.of(core.Committed)) == 2 })
			if late := events.of(core.Committed)[1]; late.Err != nil || late.Ending != core.EndCommit || !late.Repeated {
				t.Errorf("late: %+v", late)
			}
			if got := len(events.of(core.OutcomeUnknown)); got != 1 {
				t.Errorf("%d unknown outcomes", got)
			}
			if open := locks.OpenCommits(); open != (core.OpenCommits{}) {
				t.Errorf("%+v", open)
			}
			wantReplay(t, newLocker(t, server.Client(t)), key, "answer")
			_, err = locks.Begin(t.Context(), key, []byte("g"))
			if !errors.Is(err, core.ErrMismatch) {
				t.Errorf("another request with the key: %v", err)
			}
		})
	}
}

// An operator resolves the request while its commit is open, through another process. The commit
// is refused, and copies get the operator's word.
func TestOperatorBeatsOpenCommit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		resolution core.Resolution
		want       error // of a copy; nil if it runs
	}{
		"forget": {core.NotDone(), nil},
		"done":   {core.Done(), core.ErrUnreplayable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, proxy, rdb := behindProxy(t)
			var events recorder
			locks, operator := newLocker(t, rdb, core.WithObserver(events.record)), newLocker(t, server.Client(t))
			attempt := begin(t, locks, "k")
			proxy.Refuse(true)
			wantError(t, attempt.Commit(t.Context(), []byte("answer")), core.ErrUnavailable)
			server.Client(t).Del(t.Context(), "reqlock:i:k") // the lease ends
			seen := wantOutcome(t, operator, "k", core.StateUnknown, 1)
			if err := operator.Resolve(t.Context(), "k", test.resolution, seen); err != nil {
				t.Fatal(err)
			}
			proxy.Refuse(false)
			suite.Eventually(t, "the commit is refused", func() bool { return len(events.of(core.Committed)) == 2 })
			late := events.of(core.Committed)[1]
			wantError(t, late.Err, core.ErrLost)
			if !late.Repeated || locks.OpenCommits().Count != 0 {
				t.Errorf("late: %+v", late)
			}
			if test.want == nil {
				_ = begin(t, locks, "k").Abort(t.Context())
				return
			}
			_, err := locks.Begin(t.Context(), "k", []byte("f"))
			wantError(t, err, test.want)
		})
	}
}

// The network delays a begin, and the attempt is aborted: because its caller gives up, or by its handler
// after a second send has begun it. A later attempt is aborted, too. Then the begin arrives. The next
// request runs, also through another process.
func TestLateBeginAfterTwoAborts(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]bool{"the caller gives up": false, "the handler aborts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, proxy, rdb := behindProxy(t, func(o *redis.Options) { o.ReadTimeout = time.Minute })
			direct := server.Client(t)
			locks, other := newLocker(t, rdb), newLocker(t, direct)
			const key, record = "reqlock:i:k", "{reqlock:i:k}:r"
			_ = begin(t, locks, "loads the scripts").Abort(t.Context())
			deliver, held := proxy.HoldCommand(redistest.Named("EVALSHA"))
			deliverAgain := func() {}
			if runs {
				_ = begin(t, locks.With(core.WithWait(time.Minute)), "k").Abort(t.Context())
			} else {
				deliverAgain, held = proxy.HoldCommand(redistest.Named("EVALSHA")) // the second send
				_, err := locks.Begin(t.Context(), "k", []byte("f"))
				wantError(t, err, core.ErrUnavailable)
			}
			suite.AwaitClosed(t, "the sends are delayed", held)
			suite.Eventually(t, "the attempt is aborted", func() bool { return storetest.RecordAt(t, direct, record)["s"] == "A" })
			first := storetest.RecordAt(t, direct, record)["t"]
			if err := begin(t, other, "k").Abort(t.Context()); err != nil {
				t.Fatal(err)
			}
			deliver()
			deliverAgain()
			suite.Eventually(t, "the begin has arrived", func() bool { return storetest.RecordAt(t, direct, record)["t"] == first })
			suite.Eventually(t, "the key is free", func() bool { return direct.Exists(t.Context(), key).Val() == 0 })
			_ = begin(t, other, "k").Abort(t.Context())
		})
	}
}
