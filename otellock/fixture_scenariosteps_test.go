package otellock_test

import (
	"context"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// lockNext locks the key on another goroutine, and releases it at once. It closes released then.
func lockNext(tb testing.TB, locks *core.Locker) (released <-chan struct{}) {
	tb.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		second, err := locks.Lock(context.Background(), "k")
		if err != nil {
			tb.Errorf("the second lock: %v", err)
		} else if err := second.Release(context.Background()); err != nil {
			tb.Errorf("release: %v", err)
		}
	}()
	return done
}

func waitInOneProcess(f *fixture) {
	first := f.lock(f.locks, "k")
	released := lockNext(f, f.locks)
	f.awaitValue("request.waiting operation=lock lock.name=account", 1)
	f.release(first)
	suite.AwaitClosed(f, "the second holder has released", released)
}

func refusedAtOnce(f *fixture) {
	defer f.release(f.lock(f.other, "k"))
	if _, err := f.locks.TryLock(context.Background(), "k"); err == nil {
		f.Error("the key was locked twice")
	}
}

func callerLeaves(f *fixture) {
	defer f.release(f.lock(f.other, "k"))
	ctx, leave := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := f.locks.Lock(ctx, "k"); err == nil {
			f.Error("the key was locked twice")
		}
	}()
	f.awaitValue("request.waiting operation=lock lock.name=account", 1)
	leave()
	suite.AwaitClosed(f, "the caller has left", done)
}

func leaseIsLost(f *fixture) {
	lease := f.lock(f.locks, "k")
	redistest.Lose(f, f.rdb, "the lease is lost", func() bool { return lease.Context().Err() != nil }, f.prefix+"k")
	_ = lease.Release(context.Background())
}

func heldTooLong(f *fixture) {
	lease := f.lock(f.locks, "k")
	suite.AwaitClosed(f, "the lease ends", lease.Context().Done())
	_ = lease.Release(context.Background())
}

func closeGivesUp(f *fixture) {
	lease := f.lock(f.locks, "k")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = f.locks.Close(ctx)
	suite.AwaitClosed(f, "the lease ends", lease.Context().Done())
	_ = lease.Release(context.Background())
}

func heldLong(f *fixture) {
	lease := f.lock(f.locks, "k")
	f.awaitValue("lease.overruns operation=lock lock.name=account", 1)
	f.release(lease)
}

func runsUnlocked(f *fixture) {
	f.proxy.Refuse(true)
	ran := false
	if err := f.locks.Do(context.Background(), "k", func(context.Context) error { ran = true; return nil }); err != nil || !ran {
		f.Errorf("ran: %t, error %v", ran, err)
	}
}

func renewalFails(f *fixture) {
	lease := f.lock(f.locks, "k")
	f.proxy.Refuse(true)
	suite.AwaitClosed(f, "the lease ends", lease.Context().Done())
	_ = lease.Release(context.Background())
}

func commitGoesOn(f *fixture) {
	instruments, reader := newInstruments(f)
	if err := instruments.Watch(f.locks); err != nil {
		f.Fatal(err)
	}
	want := func(count, age int64) {
		f.Helper()
		expected := table{"commit.open": count, "commit.age": age, "attempt.without_client operation=attempt": 0}
		if differences := valuesOf(f, reader).differences(expected); differences != "" {
			f.Error(differences)
		}
	}
	want(0, 0)
	attempt := f.begin(f.locks, "k")
	f.proxy.Refuse(true)
	if err := attempt.Commit(context.Background(), nil); err == nil {
		f.Error("committed without Redis")
	}
	suite.Eventually(f, "the commit has an age", func() bool { return f.locks.OpenCommits().Oldest.Milliseconds() > 1 })
	want(1, some)
	f.rdb.Del(context.Background(), f.prefix+"i:k", "{"+f.prefix+"i:k}:r")
	f.proxy.Refuse(false)
	suite.Eventually(f, "the commit is accepted", func() bool { return f.locks.OpenCommits().Count == 0 })
	want(0, 0)
}

func endAttempts(f *fixture) {
	ctx := context.Background()
	for key, end := range map[string]func(a *core.Attempt) error{
		"commit":  func(a *core.Attempt) error { return a.Commit(ctx, []byte("answer")) },
		"done":    func(a *core.Attempt) error { return a.Done(ctx) },
		"abort":   func(a *core.Attempt) error { return a.Abort(ctx) },
		"unknown": func(a *core.Attempt) error { return a.Unknown(ctx, nil) },
	} {
		if err := end(f.begin(f.locks, key)); err != nil {
			f.Errorf("%s: %v", key, err)
		}
	}
	if _, ok := f.begin(f.locks, "commit").Replay(); !ok {
		f.Error("a copy runs")
	}
	for key, payload := range map[string]string{"commit": "another", "done": "payload", "unknown": "payload"} {
		if _, err := f.locks.Begin(ctx, key, []byte(payload)); err == nil {
			f.Errorf("a copy of %q runs", key)
		}
	}
}

func copyWaits(f *fixture) {
	first := f.begin(f.locks, "k")
	done := make(chan struct{})
	go func() {
		defer close(done)
		if second, err := f.locks.Begin(context.Background(), "k", []byte("payload")); err != nil {
			f.Errorf("the copy: %v", err)
		} else if _, ok := second.Replay(); !ok {
			f.Error("the copy runs")
		}
	}()
	f.awaitValue("request.waiting operation=attempt lock.name=account", 1)
	if err := first.Commit(context.Background(), []byte("answer")); err != nil {
		f.Errorf("commit: %v", err)
	}
	suite.AwaitClosed(f, "the copy has its answer", done)
}

func recordIsRestored(f *fixture) {
	a := f.begin(f.locks, "k")
	names, err := redistest.Keys(context.Background(), f.rdb, "*"+f.prefix+"*") // the names of records begin with "{"
	if err != nil || len(names) == 0 {
		f.Fatalf("keys %q: %v", names, err)
	}
	for _, name := range names {
		f.rdb.Del(context.Background(), name)
	}
	if err := a.Commit(context.Background(), []byte("answer")); err != nil {
		f.Errorf("commit: %v", err)
	}
}
