package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

const (
	// bound is the command timeout of tests that measure how long a command takes.
	bound = 2 * time.Second
	// boundAndSlack leaves 1.9 s to a busy machine. It is less than two commands take.
	boundAndSlack = bound + 1900*time.Millisecond
)

func TestContextEndsBeforeTheNextGrant(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		renew bool
		cut   func(*redistest.Proxy)
	}{
		{"without renewal", false, func(*redistest.Proxy) {}},
		{"behind a two-way partition", true, (*redistest.Proxy).Partition},
		{"behind a cut connection", true, func(p *redistest.Proxy) { p.Refuse(true) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			// The context ends a hundredth of the TTL, 20 ms, before the key. A timer may
			// be late by more than that, but not three times in a row.
			for late := 1; !contextEndsBeforeTheNextGrant(t, test.renew, test.cut); late++ {
				if late == 3 {
					t.Fatal("three times the next lock was granted before the context of the first lease ended")
				}
			}
		})
	}
}

// contextEndsBeforeTheNextGrant cuts off the holder of a lease. It reports whether the
// context of the lease had ended when the next lock was granted. It fails the test unless
// the validity had ended by then, and ends before the key.
func contextEndsBeforeTheNextGrant(t *testing.T, renew bool, cut func(*redistest.Proxy)) bool {
	t.Helper()
	server, proxy, rdb := behindProxy(t)
	lease := lock(t, newLocker(t, rdb, core.WithTTL(2*time.Second), core.WithRenewal(renew)), "k")
	cut(proxy)
	direct := server.Client(t)
	suite.Eventually(t, "the validity ends before the key", func() bool {
		asked := time.Now() // the key does not end before asked+left
		left := direct.PTTL(t.Context(), "reqlock:k").Val()
		if left <= 0 {
			t.Fatal("the key has ended, and no reply has shown that it ends after the validity")
		}
		return lease.ValidUntil().Before(asked.Add(left))
	})
	next := lock(t, newLocker(t, server.Client(t)), "k")
	ended := lease.Context().Err() != nil
	if left := time.Until(lease.ValidUntil()); left > 0 {
		t.Errorf("the next lock was granted %v before the validity of the first lease ended", left)
	}
	suite.AwaitClosed(t, "the first lease is lost", lease.Context().Done())
	wantError(t, context.Cause(lease.Context()), core.ErrLost)
	release(t, next)
	return ended
}

func TestLostReplyLeavesNoLock(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]redistest.Mode{"closed": redistest.CloseConn, "silent": redistest.KeepConn} {
		for times := 1; times <= 2; times++ {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				server, proxy, rdb := behindProxy(t)
				timeout := bound
				if times == 1 {
					timeout *= 2 // half of it passes before the command is sent again
				}
				locks := newLocker(t, rdb, core.WithTTL(time.Hour), core.WithCommandTimeout(timeout))
				direct := server.Client(t)
				for range times {
					proxy.DropReply(redistest.Named("SET"), mode)
				}
				begun := time.Now()
				lease, err := locks.TryLock(t.Context(), "k")
				if took := time.Since(begun); took > boundAndSlack {
					t.Errorf("took %v", took)
				}
				if times == 1 {
					if err != nil || direct.Get(t.Context(), "reqlock:k").Val() != lease.Token() {
						t.Fatalf("one lost reply: %v", err)
					}
					release(t, lease)
					return
				}
				wantError(t, err, core.ErrUnavailable)
				suite.Eventually(t, "the key is free", func() bool { return direct.Exists(t.Context(), "reqlock:k").Val() == 0 })
				// TryLock and the release may take a bound each. The other four are for a busy machine.
				if took := time.Since(begun); took > 6*bound {
					t.Errorf("free after %v", took)
				}
			})
		}
	}
}

func TestLockReturnsWhenItsContextIsCanceled(t *testing.T) {
	t.Parallel()
	server, proxy, rdb := behindProxy(t, readsLate)
	const commandTimeout = 10 * time.Second
	locks := newLocker(t, rdb, core.WithTTL(time.Hour), core.WithCommandTimeout(commandTimeout))
	deliver, held := proxy.HoldCommand(redistest.Named("SET"))
	ctx, cancel := context.WithCancel(t.Context())
	result := start(func() error { return errorOf(locks.Lock(ctx, "k")) })
	suite.AwaitClosed(t, "the SET is held", held)
	begun := time.Now()
	cancel()
	wantError(t, suite.Receive(t, "Lock returns", result), context.Canceled, core.ErrUnavailable)
	// Lock returns at once. A busy machine may be late by half of the command timeout, after which
	// the command would be sent again.
	if took := time.Since(begun); took > commandTimeout/2 {
		t.Errorf("took %v", took)
	}
	deliver()
	suite.Eventually(t, "the key of the abandoned SET is released", func() bool {
		return proxy.Commands()["EVALSHA"] > 0 && server.Client(t).Exists(t.Context(), "reqlock:k").Val() == 0
	})

	wantError(t, errorOf(locks.Lock(ctx, "k")), context.Canceled, core.ErrWaitTimeout)
}

func testDeadlineDuringWait(t *testing.T, servers *deployment) {
	lease := lock(t, servers.newLocker(t, servers.Client(t)), "k")
	other := servers.newLocker(t, servers.Client(t))
	wantError(t, errorOf(other.TryLock(t.Context(), "k")), core.ErrBusy) // opens the connection
	why := errors.New("the time budget of the request is used up")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, why)
	defer cancel()
	wantError(t, errorOf(other.Lock(ctx, "k")), context.DeadlineExceeded, why, core.ErrWaitTimeout, core.ErrBusy)
	release(t, lease)
}

func TestPartitionedRedis(t *testing.T) {
	t.Parallel()
	_, proxy, rdb := behindProxy(t)
	locks := newLocker(t, rdb, core.WithCommandTimeout(bound))
	lease := lock(t, locks, "held")
	proxy.Partition()
	var group sync.WaitGroup
	for _, key := range []string{"held", "one", "two", "three"} {
		group.Go(func() {
			begun := time.Now()
			_, err := locks.TryLock(t.Context(), key)
			if key == "held" {
				wantError(t, err, core.ErrBusy) // the process knows that the key is held
			} else {
				wantError(t, err, core.ErrUnavailable)
			}
			if errors.Is(err, core.ErrBusy) && errors.Is(err, core.ErrUnavailable) {
				t.Error("contention and fault at once")
			}
			if took := time.Since(begun); took > boundAndSlack {
				t.Errorf("%q took %v", key, took)
			}
		})
	}
	group.Wait()
	begun := time.Now()
	err := lease.Release(t.Context())
	wantError(t, err, core.ErrUnavailable)
	if took := time.Since(begun); took > boundAndSlack {
		t.Errorf("release took %v", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	begun = time.Now()
	if err := locks.Close(ctx); err != nil {
		wantError(t, err, context.DeadlineExceeded)
	}
	if took := time.Since(begun); took > boundAndSlack {
		t.Errorf("close took %v", took)
	}
	proxy.HealDropped() // abandoned commands end sooner
}

func TestPartitionDelaysSeveralKeysAsOne(t *testing.T) {
	t.Parallel()
	_, proxy, rdb := behindProxy(t)
	locks := newLocker(t, rdb, core.WithCommandTimeout(bound))
	within := func(what string, do func()) {
		begun := time.Now()
		do()
		if took := time.Since(begun); took > 3*bound { // one after the other takes at least four
			t.Errorf("%s took %v", what, took)
		}
	}
	request := form{"a": "1", "b": "2", "c": "3", "d": "4"}
	_, done, err := core.Enter(t.Context(), locks, request, core.All(field("a"), field("b"), field("c"), field("d")))
	noError(t, err)
	proxy.Partition()
	within("the release", done)
	proxy.HealDropped()
	suite.Eventually(t, "Redis serves locks again", func() bool {
		return locks.Do(t.Context(), "again", func(context.Context) error { return nil }) == nil
	})

	hold, seen := proxy.HoldCommand(func(c []string) bool { return c[0] == "SET" && c[1] == "reqlock:z" })
	defer hold()
	go func() {
		select {
		case <-seen:
			proxy.Partition()
		case <-t.Context().Done(): // Redis was refused before that
		}
	}()
	within("the refusal", func() {
		err := locks.With(core.WithWait(0)).DoAll(t.Context(), []string{"w", "x", "y", "z"}, func(context.Context) error { return nil })
		wantError(t, err, core.ErrUnavailable)
	})
	proxy.HealDropped()
}
