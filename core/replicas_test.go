package core_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// replicas asks for one, which has a moment: where it is away, that passes in vain.
func replicas() core.Option { return core.WithReplicas(1, 50*time.Millisecond) }

// present asks for one that is there. It has longer than a busy machine takes.
func present(opts ...core.Option) []core.Option {
	return append([]core.Option{
		core.WithReplicas(1, time.Second), core.WithCommandTimeout(4 * time.Second), core.WithTTL(16 * time.Second),
	}, opts...)
}

// calm asks for one that is away, and leaves a busy machine the time to say so.
func calm() []core.Option {
	return []core.Option{replicas(), core.WithCommandTimeout(4 * time.Second), core.WithTTL(16 * time.Second)}
}

// A replicated deployment is one whose masters have replicas.
type replicated struct {
	*redistest.Deployment
	rdb redis.UniversalClient
}

// startReplicated runs a master with two replicas, whom one may ask.
func startReplicated(t *testing.T) *redistest.Sentinels {
	t.Helper()
	sentinels := redistest.StartSentinel(t)
	for _, server := range sentinels.Servers() {
		server.Grant(redistest.ReplicaRights)
	}
	return sentinels
}

// refuse cuts the masters off from their replicas, or lets them come.
func (r *replicated) refuse(on bool) {
	for _, server := range r.Servers() {
		server.RefuseReplicas(on)
	}
}

// keysLeft returns what is in Redis but the counters of fencing numbers.
func keysLeft(t *testing.T, rdb redis.UniversalClient) []string {
	t.Helper()
	keys, err := redistest.Keys(t.Context(), rdb, "*")
	if err != nil {
		return []string{err.Error()}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return strings.HasSuffix(key, ":f") })
}

// awaitNoKeys waits until nothing is left.
func awaitNoKeys(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	await(t, "nothing is left", func() bool { return len(keysLeft(t, rdb)) == 0 })
}

// awaitReplicas waits until locks are to be had.
func (r *replicated) awaitReplicas(t *testing.T, locks *core.Locker) {
	t.Helper()
	for i := range 20 { // of all masters of a cluster
		await(t, "replicas are there", func() bool {
			lease, err := locks.TryLock(t.Context(), fmt.Sprint("ready", i))
			if err != nil {
				return false
			}
			release(t, lease)
			return true
		})
	}
}

// onReplicated runs the test where there are replicas.
func onReplicated(t *testing.T, test func(t *testing.T, servers *replicated)) {
	t.Helper()
	for _, kind := range []redistest.Kind{redistest.OnSentinels, redistest.OnCluster} {
		t.Run(kind.String(), func(t *testing.T) {
			d := kind.Start(t)
			d.Grant(redistest.ReplicaRights)
			test(t, &replicated{d, d.Client(t)})
		})
	}
}

const short = "only 0 of 1 replicas have acknowledged it"

func TestLocksThatReplicasHave(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		locks, other := newLocker(t, servers.Client(t), present()...), newLocker(t, servers.Client(t), present()...)
		if err := locks.Check(t.Context()); err != nil {
			t.Errorf("check: %v", err)
		}
		for i := range 6 {
			key := fmt.Sprint("k", i)
			lease := lock(t, locks, key)
			_, err := other.TryLock(t.Context(), key)
			wantError(t, err, core.ErrBusy)
			_, err = locks.TryLock(t.Context(), key)
			wantError(t, err, core.ErrBusy)
			if err := lease.Extend(t.Context(), time.Minute); err != nil {
				t.Errorf("extend: %v", err)
			}
			next, there := make(chan *core.Lease), make(chan *core.Lease)
			go func() { next <- lock(t, other, key) }()
			await(t, "the other stands in line", func() bool {
				keys, err := redistest.Keys(t.Context(), servers.rdb, "{reqlock:"+key+"}:q")
				return err == nil && len(keys) == 1
			})
			go func() { there <- lock(t, locks, key) }()
			release(t, lease)
			release(t, <-next)
			release(t, <-there)
			if err := locks.With(core.WithFencing(true)).Do(t.Context(), key, func(context.Context) error { return nil }); err != nil {
				t.Errorf("do: %v", err)
			}
		}
		attempt := begin(t, locks, "order")
		if err := attempt.Commit(t.Context(), []byte("done")); err != nil {
			t.Errorf("commit: %v", err)
		}
		wantReplay(t, other, "order", "done")
	})
}

//faults:row 18: the key is free again, and the error says how many have it
func TestNobodyGetsALockThatTooFewReplicasHave(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		locks := newLocker(t, servers.Client(t), calm()...)
		servers.awaitReplicas(t, locks)
		servers.refuse(true)
		refused := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), short) {
				t.Errorf("%s: %v", what, err)
			}
			if outcome, ok := core.OutcomeOf(err); !ok || outcome.HTTP != 503 {
				t.Errorf("%s: %+v", what, outcome)
			}
			awaitNoKeys(t, servers.rdb)
		}
		_, err := locks.TryLock(t.Context(), "k")
		refused("try", err)
		_, err = locks.With(core.WithFencing(true)).TryLock(t.Context(), "k")
		refused("try, with a number", err)
		waits, done := locks.With(core.WithWait(2*time.Second)), make(chan error) // for longer than the first answer takes
		go func() {
			done <- waits.Do(t.Context(), "other", func(context.Context) error {
				t.Error("it runs without the lock")
				return nil
			})
		}()
		_, err = waits.Lock(t.Context(), "k")
		did := <-done
		refused("lock", err)
		refused("do", did)
		_, err = locks.With(core.WithFailOpen(true)).TryLock(t.Context(), "k")
		refused("try, open", err)

		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err = locks.Lock(ctx, "k")
		wantError(t, err, context.DeadlineExceeded, core.ErrUnavailable)
		awaitNoKeys(t, servers.rdb)

		waited := make(chan *core.Lease)
		go func() { waited <- lock(t, locks, "k") }()
		servers.refuse(false)
		release(t, <-waited) // it has waited until they were back
		servers.awaitReplicas(t, locks)
		awaitNoKeys(t, servers.rdb)

		servers.refuse(true)
		wantFinding(t, locks.Check(t.Context()), "only 0 of 1 replicas", "WithReplicas")
		if err := locks.Close(t.Context()); err != nil { // which waits for what Check cleans up
			t.Error(err)
		}
		if keys := keysLeft(t, servers.rdb); len(keys) != 0 {
			t.Errorf("check leaves %v", keys)
		}
	})
}

// A waiter keeps the key while it asks again and again, so nobody can tell that it was
// not granted the lock.
func TestAKeyIsBusyAsLongAsAWaiterAsksForItsReplicas(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		waits, comes := newLocker(t, servers.Client(t), calm()...), newLocker(t, servers.Client(t), calm()...)
		servers.awaitReplicas(t, comes)
		servers.refuse(true)
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan error)
		go func() {
			_, err := waits.Lock(ctx, "k")
			waited <- err
		}()
		await(t, "the waiter has the key", func() bool {
			return servers.rdb.Exists(t.Context(), "reqlock:k").Val() == 1
		})
		for range 3 {
			_, err := comes.TryLock(t.Context(), "k")
			wantError(t, err, core.ErrBusy)
			_, err = comes.With(core.WithWait(300*time.Millisecond)).Lock(t.Context(), "k")
			if !errors.Is(err, core.ErrWaitTimeout) && !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("lock: %v", err)
			}
		}
		cancel()
		wantError(t, <-waited, context.Canceled, core.ErrUnavailable)
		awaitNoKeys(t, servers.rdb)
		_, err := comes.TryLock(t.Context(), "k")
		wantError(t, err, core.ErrUnavailable)

		servers.refuse(false)
		servers.awaitReplicas(t, comes)
		release(t, lock(t, comes, "k"))
		awaitNoKeys(t, servers.rdb)
	})
}

// The longest time that is allowed, at a server that knows no script yet,
// as after a failover.
func TestTheLongestTimeForReplicasFitsIntoACommand(t *testing.T) {
	server := redistest.Start(t)
	server.Grant(redistest.ReplicaRights)
	locks := newLocker(t, server.Client(t), core.WithReplicas(1, 500*time.Millisecond), core.WithCommandTimeout(2*time.Second))
	wantFinding(t, locks.Check(t.Context()), "only 0 of 1 replicas", "WithReplicas")
	if err := server.Client(t).ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	_, err := locks.TryLock(t.Context(), "k")
	if err == nil || !strings.Contains(err.Error(), short) {
		t.Errorf("try: %v", err)
	}
}

// That of the default, 500 ms, is too short to tell on a busy machine what was missing.
func TestTheLongestTimeForReplicasByDefaultLeavesNoLock(t *testing.T) {
	server := redistest.Start(t)
	server.Grant(redistest.ReplicaRights)
	rdb := server.Client(t)
	locks := newLocker(t, rdb, core.WithReplicas(1, 125*time.Millisecond), core.WithCommandTimeout(500*time.Millisecond))
	for range 2 { // the scripts are known the second time
		_, err := locks.TryLock(t.Context(), "k")
		if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), short) && !strings.Contains(err.Error(), "no reply within") {
			t.Errorf("try: %v", err)
		}
		awaitNoKeys(t, rdb)
	}
}

// Refusals and replays need no replicas, but leave together with what does, which
// may have the longest time that is allowed.
func TestAReplayIsNotRefusedBesideWhatWaitsForReplicas(t *testing.T) {
	if os.Getenv("REQLOCK_LANE_WIDTH") != "" {
		t.Skip("in narrow lanes they leave one after the other, each with a wait for replicas")
	}
	s := startReplicated(t)
	locks := newLocker(t, s.Client(t), core.WithReplicas(1, 500*time.Millisecond), core.WithCommandTimeout(2*time.Second))
	if err := begin(t, locks, "order").Commit(t.Context(), []byte("done")); err != nil {
		t.Fatal(err)
	}
	s.Master().RefuseReplicas(true)
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for i := range 4 {
		others.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, _ = locks.Begin(ctx, fmt.Sprint("other", i, " ", n), []byte("f"))
			}
		})
	}
	for range 4 {
		wantReplay(t, locks, "order", "done")
	}
	cancel()
	others.Wait()
}

func TestALockIsLostWithItsReplicas(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		heard := &events{}
		locks := newLocker(t, servers.Client(t), replicas(), core.WithTTL(2*time.Second), core.WithObserver(heard.observe))
		lease := lock(t, locks, "k")
		servers.refuse(true)
		<-lease.Context().Done()
		if cause := context.Cause(lease.Context()); !errors.Is(cause, core.ErrLost) || time.Now().Before(lease.ValidUntil()) {
			t.Errorf("%v, valid for %v", cause, time.Until(lease.ValidUntil()))
		}
		renewed := heard.of(core.Renewed)
		says := func(e core.Event) bool { return e.Err != nil && strings.Contains(e.Err.Error(), short) }
		if !slices.ContainsFunc(renewed, says) || renewed[len(renewed)-1].Err == nil {
			t.Errorf("renewals: %+v", renewed)
		}
		wantError(t, lease.Release(t.Context()), core.ErrLost)
		awaitNoKeys(t, servers.rdb)
	})
}

// No release waits for replicas, whoever waits for the lock here.
func TestAReleaseWithAWaiterHereDoesNotWaitForReplicas(t *testing.T) {
	s, heard := startReplicated(t), &events{}
	rdb := s.Client(t, func(o *redis.FailoverOptions) { o.ReadTimeout = 5 * time.Minute })
	locks := newLocker(t, rdb, core.WithReplicas(2, time.Minute), core.WithCommandTimeout(4*time.Minute), core.WithTTL(16*time.Minute),
		core.WithObserver(heard.observe))
	lease := lock(t, locks, "k")
	if err := lease.Extend(t.Context(), 20*time.Minute); err != nil { // so that it is not passed on here
		t.Fatal(err)
	}
	next := make(chan *core.Lease)
	go func() { next <- lock(t, locks, "k") }()
	await(t, "another one waits", func() bool { return len(heard.of(core.Waiting)) == 1 })
	s.Master().RefuseReplicas(true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
	s.Master().RefuseReplicas(false)
	release(t, <-next)
}

// An abort does not wait for replicas. Where a failover loses it, the attempt has died.
func TestAnAbortThatIsLostLeavesAnAttemptThatDied(t *testing.T) {
	s := startReplicated(t)
	locks := newLocker(t, s.Client(t), core.WithReplicas(2, 250*time.Millisecond), core.WithCommandTimeout(time.Second), core.WithTTL(4*time.Second))
	attempt := begin(t, locks.With(core.WithWait(20*time.Second)), "order") // which its replicas may be late to have
	s.Master().RefuseReplicas(true)
	if err := attempt.Abort(t.Context()); err != nil {
		t.Error(err)
	}
	s.Failover()
	await(t, "it is known to have died", func() bool {
		_, err := locks.Begin(t.Context(), "order", []byte("f"))
		return errors.Is(err, core.ErrInterrupted)
	})
}

func TestACommitThatTooFewReplicasHaveIsToldAndNotUndone(t *testing.T) {
	onReplicated(t, func(t *testing.T, servers *replicated) {
		heard := &events{}
		locks := newLocker(t, servers.Client(t), core.WithReplicas(1, 500*time.Millisecond), core.WithObserver(heard.observe))
		patient := locks.With(core.WithWait(20 * time.Second)) // where replicas may be late
		attempt := begin(t, patient, "order")
		servers.refuse(true)
		if err := attempt.Commit(t.Context(), []byte("done")); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), short) {
			t.Errorf("commit: %v", err)
		}
		if committed := heard.of(core.Committed); len(committed) != 1 || committed[0].Err == nil {
			t.Errorf("told %+v", committed)
		}
		wantReplay(t, locks, "order", "done")
		_, err := locks.Begin(t.Context(), "other", []byte("f"))
		wantError(t, err, core.ErrUnavailable)

		servers.refuse(false)
		servers.awaitReplicas(t, locks)
		wantReplay(t, locks, "order", "done")
		next := begin(t, patient, "other") // its record is that of nobody who was refused
		if next.Number() != 1 {
			t.Errorf("attempt %d", next.Number())
		}
		if err := next.Seal(t.Context()); err != nil {
			t.Errorf("seal: %v", err)
		}
	})
}

// Who asks for replicas needs one right more, and nobody else does.
func TestCheckOfTheRightToAskReplicas(t *testing.T) {
	sentinels := redistest.StartSentinel(t)
	admin := sentinels.Master().Client(t)
	grant := func(words string) {
		t.Helper()
		order := []any{"acl", "setuser", "alice"}
		for _, word := range strings.Fields(words) {
			order = append(order, word)
		}
		if err := admin.Do(t.Context(), order...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	grant("reset on >secret resetchannels " + redistest.Rights)
	rdb := sentinels.Master().Client(t, as("alice", "secret"))
	if err := newLocker(t, rdb).Check(t.Context()); err != nil {
		t.Errorf("without replicas: %v", err)
	}
	locks := newLocker(t, rdb, present()...)
	wantFinding(t, locks.Check(t.Context()), "grant it "+redistest.ReplicaRights)
	_, err := locks.Lock(t.Context(), "k") // which does not wait for a right
	wantError(t, err, core.ErrUnavailable)
	awaitNoKeys(t, admin)
	grant(redistest.ReplicaRights)
	await(t, "all is well", func() bool { return locks.Check(t.Context()) == nil })
	release(t, lock(t, locks, "k"))
}

func TestSettingsOfReplicas(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{})
	hasty := redis.NewClient(&redis.Options{ReadTimeout: 100 * time.Millisecond})
	t.Cleanup(func() { _, _ = rdb.Close(), hasty.Close() })
	for name, test := range map[string]struct {
		rdb  redis.UniversalClient
		opts []core.Option
		says string // "" if they will do
	}{
		"none of them":                       {rdb, []core.Option{core.WithReplicas(0, time.Second)}, "0 is below 1"},
		"no time":                            {rdb, []core.Option{core.WithReplicas(1, time.Millisecond-1)}, "below 1ms"},
		"a quarter of a command's time":      {rdb, []core.Option{core.WithReplicas(1, 125*time.Millisecond)}, ""},
		"more than a quarter of a command's": {rdb, []core.Option{core.WithReplicas(1, 126*time.Millisecond)}, "WithCommandTimeout"},
		"a quarter of a longer one": {rdb, []core.Option{
			core.WithReplicas(1, time.Second), core.WithCommandTimeout(4 * time.Second), core.WithTTL(16 * time.Second),
		}, ""},
		"a sixteenth of the TTL":           {rdb, []core.Option{replicas(), core.WithTTL(800 * time.Millisecond)}, ""},
		"more than a sixteenth of the TTL": {rdb, []core.Option{core.WithTTL(799 * time.Millisecond), replicas()}, "a TTL of at least 800ms"},
		"for ever":                         {rdb, []core.Option{core.WithReplicas(1, 1<<62)}, "WithCommandTimeout"},
		"a client that is hidden":          {struct{ redis.UniversalClient }{rdb}, []core.Option{replicas()}, "does not show what it wraps"},
		"a client that reads too briefly":  {hasty, []core.Option{replicas()}, "ReadTimeout"},
	} {
		locks, err := core.New(test.rdb, test.opts...)
		switch {
		case test.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.says == "":
			_ = locks.Close(t.Context())
		case err == nil || locks != nil || !strings.HasPrefix(err.Error(), "reqlock: WithReplicas: ") || !strings.Contains(err.Error(), test.says):
			t.Errorf("%s: %v", name, err)
		}
	}
	locks := newLocker(t, rdb, replicas())
	for name, opt := range map[string]core.Option{"WithReplicas is a setting": replicas(), "a TTL of at least": core.WithTTL(799 * time.Millisecond)} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, name) {
					t.Errorf("%s: it panics with %q", name, said)
				}
			}()
			locks.With(opt)
		}()
	}
}
