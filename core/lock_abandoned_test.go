package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Redis grants the lock, and the caller's deadline ends before the reply arrives.
func TestDeadlineEndsBeforeTheGrantArrives(t *testing.T) {
	t.Parallel()
	server, proxy, rdb := behindProxy(t)
	locks := newLocker(t, rdb, core.WithTTL(time.Hour), core.WithCommandTimeout(10*time.Second))
	admin := server.Client(t)
	granted := proxy.DropReply(redistest.Named("SET"), redistest.KeepConn)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := locks.Lock(ctx, "k")
	if took := time.Since(begun); took > 8*time.Second { // below the command timeout; the rest is for a busy machine
		t.Errorf("took %v", took)
	}
	wantError(t, err, context.DeadlineExceeded, core.ErrUnavailable)
	suite.AwaitClosed(t, "the reply is dropped", granted)
	suite.Eventually(t, "the grant is released", func() bool { return admin.Exists(t.Context(), "reqlock:k").Val() == 0 })
	suite.Eventually(t, "the abandoned command has ended", func() bool {
		lease, err := locks.TryLock(t.Context(), "k")
		return err == nil && lease.Release(t.Context()) == nil
	})
	if left := admin.Exists(t.Context(), "reqlock:k").Val(); left != 0 {
		t.Error("the key is still locked")
	}
}

// A SET arrives after its caller was refused, and after the release. Its reply causes another
// release.
func TestDelayedSetIsReleasedWhenItsReplyArrives(t *testing.T) {
	t.Parallel()
	server, proxy, rdb := behindProxy(t, readsLate)
	locks := newLocker(t, rdb, core.WithTTL(time.Hour))
	direct := server.Client(t)
	release(t, lock(t, locks, "k")) // loads the script
	released := executed(t, direct, "evalsha")
	first, second := delaySet(proxy), delaySet(proxy) // the command is sent twice
	wantError(t, errorOf(locks.TryLock(t.Context(), "k")), core.ErrUnavailable)
	suite.Eventually(t, "the release is executed", func() bool { return executed(t, direct, "evalsha") > released })
	suite.AwaitClosed(t, "the first SET is held", first.held)
	for _, set := range []delayedSet{first, second} {
		if !suite.IsClosed(set.held) {
			break // a busy machine was too late to send it again
		}
		set.deliver()
		suite.AwaitClosed(t, "the late SET is executed", set.executed) // the look after the token may release it before the reply
		set.reply()
		suite.Eventually(t, "the key is released", func() bool { return direct.Exists(t.Context(), "reqlock:k").Val() == 0 })
	}
}

// A delayedSet is a SET that the proxy holds until deliver, and its reply until reply.
type delayedSet struct {
	deliver, reply func()
	held, executed <-chan struct{}
}

// delaySet delays the next SET that is not delayed yet.
func delaySet(proxy *redistest.Proxy) (d delayedSet) {
	d.deliver, d.held = proxy.HoldCommand(redistest.Named("SET"))
	d.reply, d.executed = proxy.HoldReply(redistest.Named("SET"))
	return d
}

// A SET arrives after its process has ended. No process reads the reply or releases the
// key, so the key stays locked until its TTL ends.
func TestDelayedSetOfDeadProcessExpires(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	server, proxy, rdb := behindProxy(t)
	admin := server.Client(t)
	locks := newLocker(t, rdb, core.WithTTL(ttl), core.WithCommandTimeout(500*time.Millisecond))
	deliver, held := proxy.HoldCommand(redistest.Named("SET"))
	again, _ := proxy.HoldCommand(redistest.Named("SET"))
	wantError(t, errorOf(locks.TryLock(t.Context(), "k")), core.ErrUnavailable)
	suite.AwaitClosed(t, "the SET is held", held)
	noError(t, locks.Close(t.Context())) // waits for all its commands
	_ = rdb.Close()                      // the process has ended
	before, delivered := executed(t, admin, "set"), time.Now()
	deliver()
	again()
	// On a busy machine the key may have ended when the test looks. So the test looks at what the
	// server has executed.
	suite.Eventually(t, "the SET arrives", func() bool { return executed(t, admin, "set") > before })
	if left := admin.PTTL(t.Context(), "reqlock:k").Val(); left > ttl || left == -1 { // -1: it has no TTL
		t.Errorf("the abandoned key lives for %v", left)
	}
	next := lock(t, newLocker(t, server.Client(t)), "k")
	if took := time.Since(delivered); took < ttl {
		t.Errorf("the abandoned key was free after %v, want %v", took, ttl)
	}
	release(t, next)
}

// executed returns how often the server has executed a command.
func executed(t *testing.T, admin *redis.Client, command string) (n int) {
	t.Helper()
	stats, ok := admin.InfoMap(t.Context(), "commandstats").Val()["Commandstats"]["cmdstat_"+command]
	if !ok {
		return 0
	}
	if _, err := fmt.Sscanf(stats, "calls=%d", &n); err != nil {
		t.Fatalf("%q: %v", stats, err)
	}
	return n
}

// The reply to a release is lost. The second send finds no key, and that is not a loss.
func TestLostReplyToReleaseIsNoLoss(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]redistest.Mode{"closed": redistest.CloseConn, "silent": redistest.KeepConn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, proxy, rdb := behindProxy(t)
			locks, events := observed(t, rdb, core.WithTTL(time.Hour), core.WithCommandTimeout(6*time.Second))
			release(t, lock(t, locks, "k")) // loads the script, unless the server needs none
			lease := lock(t, locks, "k")
			dropped := proxy.DropReply(redistest.Named("EVALSHA", "DELIFEQ"), mode)
			release(t, lease)
			suite.AwaitClosed(t, "the reply is dropped", dropped)
			if lost := events.of(core.Lost); len(lost) != 0 {
				t.Errorf("lost: %+v", lost)
			}
			if server.Client(t).Exists(t.Context(), "reqlock:k").Val() != 0 {
				t.Error("the key is still locked")
			}
		})
	}
}
