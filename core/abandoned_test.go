package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// The key is granted, and the reply does not come before the caller's deadline.
//
//faults:row 2
//faults:row 4: the context that has ended is the caller's
func TestADeadlineWhileTheGrantIsOnItsWay(t *testing.T) {
	server, proxy, rdb := behindProxy(t)
	locks := newLocker(t, rdb, core.WithTTL(time.Hour), core.WithCommandTimeout(10*time.Second))
	admin := server.Client(t)
	granted := proxy.DropReply(redistest.Named("SET"), redistest.KeepConn)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begun := time.Now()
	_, err := locks.Lock(ctx, "k")
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("took %v", took)
	}
	wantError(t, err, context.DeadlineExceeded, core.ErrUnavailable)
	<-granted
	await(t, "what nobody wants is given back", func() bool { return admin.Exists(t.Context(), "reqlock:k").Val() == 0 })
	await(t, "nothing is under way", func() bool {
		lease, err := locks.TryLock(t.Context(), "k")
		return err == nil && lease.Release(t.Context()) == nil
	})
	if left := admin.Exists(t.Context(), "reqlock:k").Val(); left != 0 {
		t.Error("the key is left")
	}
}

// A SET arrives when its process has given up and is gone: nobody sees its reply,
// and nobody undoes it. It falls by its TTL.
//
//faults:row 5 limit: its reply is lost too
func TestADelayedSetOfTheDeadFallsByItsTTL(t *testing.T) {
	t.Parallel()
	const ttl = 8 * time.Second
	server, proxy, rdb := behindProxy(t)
	admin := server.Client(t)
	locks := newLocker(t, rdb, core.WithTTL(ttl), core.WithCommandTimeout(500*time.Millisecond))
	deliver, held := proxy.HoldCommand(redistest.Named("SET"))
	again, _ := proxy.HoldCommand(redistest.Named("SET"))
	_, err := locks.TryLock(t.Context(), "k")
	wantError(t, err, core.ErrUnavailable)
	<-held
	if err := locks.Close(t.Context()); err != nil { // it has cleaned up, and nothing of that is on its way
		t.Fatal(err)
	}
	_ = rdb.Close() // the process is gone
	deliver()
	again()
	await(t, "the SET has arrived", func() bool { return admin.Exists(t.Context(), "reqlock:k").Val() == 1 })
	if left := admin.PTTL(t.Context(), "reqlock:k").Val(); left <= 0 || left > ttl {
		t.Errorf("the key of nobody lives for %v", left)
	}
	next := lock(t, newLocker(t, server.Client(t)), "k")
	release(t, next)
}

// A release of which nobody hears is sent again, and finds no key. That is no loss.
//
//faults:row 10
func TestALostReplyToAReleaseIsNoLoss(t *testing.T) {
	for name, mode := range map[string]redistest.Mode{"closed": redistest.CloseConn, "silent": redistest.KeepConn} {
		t.Run(name, func(t *testing.T) {
			server, proxy, rdb := behindProxy(t)
			heard := &events{}
			locks := newLocker(t, rdb, core.WithTTL(time.Hour), core.WithCommandTimeout(2*time.Second), core.WithObserver(heard.observe))
			release(t, lock(t, locks, "k")) // the server knows the script
			lease := lock(t, locks, "k")
			dropped := proxy.DropReply(redistest.Named("EVALSHA"), mode)
			release(t, lease)
			<-dropped
			if lost := heard.of(core.Lost); len(lost) != 0 {
				t.Errorf("told of a loss: %+v", lost)
			}
			if server.Client(t).Exists(t.Context(), "reqlock:k").Val() != 0 {
				t.Error("the key is left")
			}
		})
	}
}
