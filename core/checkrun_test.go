package core_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// heldChecks is a Locker whose Checks wait until the first command of a run is released.
type heldChecks struct {
	locks   *core.Locker
	events  *recorder     // one of them warns of an eviction policy
	release chan struct{} // closed to let all runs go on
	sets    atomic.Int64  // SET is the first command of a run
}

// holdChecks returns heldChecks. Call it in a bubble.
func holdChecks(t *testing.T) *heldChecks {
	t.Helper()
	h := &heldChecks{release: make(chan struct{})}
	h.locks, h.events = observed(t, storetest.Embedded(t, func(client *server.Peer, command string, _ ...string) (answered bool) {
		switch command {
		case "SET":
			h.sets.Add(1)
			<-h.release
		case "INFO":
			client.WriteBulk("maxmemory:1\r\nmaxmemory_policy:allkeys-lru")
			return true
		}
		return false
	}), patient)
	return h
}

// start calls Check on a view, and returns its result.
func (h *heldChecks) start(ctx context.Context) <-chan error {
	checked := start(func() error { return h.locks.With(core.WithTTL(time.Minute)).Check(ctx) })
	synctest.Wait()
	return checked
}

func TestChecksAtOnceShareOneRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := holdChecks(t)
		first, cancel := context.WithCancel(t.Context())
		leaves := h.start(first)
		var stay []<-chan error
		for range 100 {
			stay = append(stay, h.start(t.Context()))
		}
		if n := h.sets.Load(); n != 1 {
			t.Errorf("%d runs began", n)
		}
		cancel()
		synctest.Wait()
		select {
		case err := <-leaves:
			wantError(t, err, core.ErrUnavailable, context.Canceled)
		default:
			t.Error("the caller stays after its context has ended")
		}
		close(h.release)
		for _, checked := range stay {
			noError(t, <-checked)
		}
		if warned := h.events.of(core.Warned); len(warned) != 2 || !strings.Contains(warned[1].Err.Error(), "allkeys-lru") { // the first one is about ContextTimeoutEnabled
			t.Errorf("warned: %v", warned)
		}
		full := h.sets.Load()
		for pause, want := range map[time.Duration]int64{time.Minute: 1, time.Hour: full} {
			before := h.sets.Load()
			time.Sleep(pause)
			noError(t, h.locks.Check(t.Context()))
			if n := h.sets.Load() - before; n != want {
				t.Errorf("the next check after %v: %d SETs, want %d", pause, n, want)
			}
		}
	})
}

func TestCheckRunEndsWithItsLastCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := holdChecks(t)
		ctx, cancel := context.WithCancel(t.Context())
		left := []<-chan error{h.start(ctx), h.start(ctx)}
		cancel()
		for _, checked := range left {
			wantError(t, <-checked, core.ErrUnavailable, context.Canceled)
		}
		next := h.start(t.Context())
		if n := h.sets.Load(); n != 2 {
			t.Errorf("%d runs began, want another one", n)
		}
		close(h.release)
		noError(t, <-next)
	})
}

func TestCloseEndsTheCheckRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := holdChecks(t)
		checked := h.start(t.Context())
		ended := endedContext()
		wantError(t, h.locks.Close(ended), context.Canceled)
		wantError(t, <-checked, core.ErrClosed)
		wantError(t, h.locks.Check(t.Context()), core.ErrClosed)
		close(h.release)
	})
}

// The subscription is never confirmed.
func TestCheckFindsLostMessages(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	proxy := redistest.NewProxy(t, server.Addr())
	locks := newLocker(t, proxy.Client(t), core.WithCommandTimeout(2*time.Second))
	for range 8 { // on a busy machine it subscribes again before Check gives up
		deliver, _ := proxy.HoldCommand(redistest.Named("SUBSCRIBE"))
		defer deliver()
	}
	wantFinding(t, locks.Check(t.Context()), "subscription", "pub/sub")
}

// Only a script that hands a key to waiting readers uses LRANGE, and it does so only once the Locker
// has subscribed. Here that takes a second of the bubble: a Check that did not await its subscription
// would run all its steps within it.
func TestCheckNamesTheMissingRightOfASlowSubscription(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		subscribing, subscribe := make(chan struct{}), make(chan struct{})
		var isHeld atomic.Bool
		rdb := storetest.Embedded(t, func(client *server.Peer, command string, _ ...string) (answered bool) {
			switch command {
			case "SET": // the first command of Check; it waits here, so the Locker is the first to subscribe
				<-subscribing
			case "SUBSCRIBE":
				if isHeld.CompareAndSwap(false, true) {
					close(subscribing)
					<-subscribe
				}
			case "LRANGE":
				client.WriteError("NOPERM The user executing the script can't run the 'lrange' command")
				return true
			}
			return false
		})
		locks := newLocker(t, rdb, patient)
		time.AfterFunc(time.Second, func() { close(subscribe) })
		wantFinding(t, locks.Check(t.Context()), "+lrange")
	})
}

// A command that was sent twice may be executed again after the next ones, and lock the key of a Check.
func TestCheckSurvivesALateCopy(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	admin := server.Client(t)
	proxy := redistest.NewProxy(t, server.Addr())
	locks := newLocker(t, proxy.Client(t), core.WithCommandTimeout(5*time.Second))
	noError(t, newLocker(t, admin).Check(t.Context())) // the server has the scripts now
	take, _ := proxy.HoldCommand(redistest.Named("SET"))
	defer take()
	next, seen := proxy.HoldCommand(redistest.Named("EVAL")) // after the key was released
	defer next()
	checked := start(func() error { return locks.Check(t.Context()) })
	suite.AwaitClosed(t, "the key is released", seen)
	take()
	suite.Eventually(t, "the late copy locks the key", func() bool { return len(admin.Keys(t.Context(), "*").Val()) > 0 })
	next()
	noError(t, suite.Receive(t, "the check returns", checked))
}

// Another program deletes all keys.
func TestCheckFindsLostKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	admin := server.Client(t)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
				admin.FlushAll(t.Context())
			}
		}
	}()
	defer func() { close(end); <-ended }()
	locks := newLocker(t, server.Client(t), patient)
	var err error
	suite.Eventually(t, "a check fails", func() bool {
		err = locks.Check(t.Context())
		return err != nil && strings.Contains(err.Error(), "loses or changes keys")
	})
	wantFinding(t, err, "other program")
}

// A proxy answers SUBSCRIBE by an array at which go-redis panics. Check names it, locks work, and the
// observer gets one warning.
func TestUnreadableSubscriptionIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := storetest.Embedded(t, func(client *server.Peer, command string, _ ...string) (answered bool) {
			if command == "SUBSCRIBE" {
				client.WriteRaw("*1\r\n:1\r\n")
			}
			return command == "SUBSCRIBE"
		})
		locks, events := observed(t, rdb, patient)
		wantFinding(t, locks.Check(t.Context()), "unexpected reply")
		lease := lock(t, locks, "k")
		next := startLock(t, locks, "k")
		time.Sleep(time.Minute)
		release(t, lease)
		release(t, next())
		synctest.Wait()
		warned := events.of(core.Warned)
		if n := len(warned); n != 2 || !strings.Contains(warned[1].Err.Error(), "go-redis cannot read") { // the first one is about ContextTimeoutEnabled
			t.Errorf("warned: %v", warned)
		}
	})
}

// go-redis panics at a reply whose length has gained digits. No goroutine of reqlock passes that on:
// each request gets a fault, and so does Check.
func TestReplyOfAbsurdLengthIsAFault(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]core.Option{
		"without replicas": nil,
		"with replicas":    {core.WithReplicas(1, 100*time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb := storetest.Embedded(t, func(client *server.Peer, command string, _ ...string) (answered bool) {
					if answered = command != "HELLO"; answered {
						client.WriteRaw("*9223372036854775807\r\n")
					}
					return answered
				})
				locks := newLocker(t, rdb, append(opts, patient)...)
				var requests sync.WaitGroup
				for i := range 10 { // most of them share a pipeline
					requests.Go(func() {
						_, err := locks.TryLock(t.Context(), fmt.Sprint(i))
						wantError(t, err, core.ErrUnavailable)
						if !strings.Contains(err.Error(), "cannot parse the reply") {
							t.Error(err)
						}
					})
				}
				requests.Wait()
				wantFinding(t, locks.Check(t.Context()), "cannot parse the reply")
			})
		})
	}
}
