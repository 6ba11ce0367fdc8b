package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// reencoded returns the ticket as another process reads it from the payload of a job.
func reencoded(t *testing.T, ticket core.Ticket) core.Ticket {
	t.Helper()
	payload, err := json.Marshal(struct{ Lock core.Ticket }{ticket})
	noError(t, err)
	var job struct{ Lock core.Ticket }
	noError(t, json.Unmarshal(payload, &job))
	return job.Lock
}

// testHandover hands a lease over to another process, on each kind of Redis. A classic client and a
// waiter see a locked key all the time.
func testHandover(t *testing.T, servers *deployment) {
	rdb := servers.Client(t)
	service, given := servers.observed(t, rdb, withoutResend(core.WithFencing(true))...)
	worker, taken := servers.observed(t, servers.Client(t), withoutResend(core.WithFencing(true), core.WithMaxHold(time.Hour))...)
	other := servers.newLocker(t, servers.Client(t), withoutResend()...)

	lease := lock(t, service, "k")
	waits := startLock(t, other, "k")
	ticket, err := lease.Handover(lease.Context(), time.Minute) // its end does not end the wait for the reply
	noError(t, err)
	wantError(t, context.Cause(lease.Context()), core.ErrHandedOver, core.ErrLost)
	wantError(t, lease.Extend(t.Context(), time.Minute), core.ErrHandedOver)
	wantError(t, errorOf(lease.Handover(t.Context(), time.Minute)), core.ErrHandedOver)
	wantError(t, errorOf(core.Detach(lease.Context())), core.ErrHandedOver)
	release(t, lease) // as its middleware does
	if rdb.SetNX(t.Context(), servers.name("k"), "classic", time.Minute).Val() || isFree(t, service, "k") {
		t.Fatal("the key is free before the ticket is accepted")
	}

	ticket = reencoded(t, ticket)
	got, err := worker.Accept(t.Context(), ticket)
	noError(t, err)
	noError(t, got.Context().Err())
	if got.Key() != "k" || got.Fence() <= lease.Fence() {
		t.Errorf("key %q, fence %d after %d", got.Key(), got.Fence(), lease.Fence())
	}
	noError(t, worker.Do(got.Context(), "k", func(context.Context) error { return nil })) // nested
	for _, locks := range []*core.Locker{service, worker} {
		_, err := locks.Accept(t.Context(), ticket)
		wantError(t, err, core.ErrChanged)
		if refusal, ok := core.RefusalOf(err); !ok || refusal.Code != "changed" || refusal.RetryAfter != 0 || strings.Contains(err.Error(), lease.Token()) || !strings.HasPrefix(err.Error(), "reqlock: the ticket is void: it was accepted before") {
			t.Errorf("%+v, %v", refusal, err)
		}
	}
	noError(t, got.Extend(t.Context(), time.Minute))
	release(t, got)
	release(t, waits())
	wantError(t, errorOf(worker.Accept(t.Context(), ticket)), core.ErrChanged)

	if n := len(given.of(core.HandedOver)); n != 1 || len(given.of(core.Released)) != 1 || given.of(core.HandedOver)[0].Held <= 0 {
		t.Errorf("%d events of the handover, %d of releases", n, len(given.of(core.Released)))
	}
	if acquired := taken.of(core.Acquired); len(acquired) != 1 || acquired[0].Grant != core.GrantAccepted || acquired[0].Grant.String() != "accepted" {
		t.Errorf("events %+v", acquired)
	}
}

// testTicketIsNotAccepted waits for the end of the grace: the waiter gets the key, and the ticket is void.
func testTicketIsNotAccepted(t *testing.T, servers *deployment) {
	locks := servers.newLocker(t, servers.Client(t), core.WithFencing(true), core.WithTTL(time.Minute))
	other := servers.newLocker(t, servers.Client(t))
	const grace = 3 * time.Second
	lease := lock(t, locks, "k")
	begun := time.Now()
	ticket, err := lease.Handover(t.Context(), grace)
	noError(t, err)
	got := lock(t, other, "k")
	if waited := time.Since(begun); waited < grace {
		t.Errorf("the waiter got the key after %v", waited)
	}
	wantError(t, errorOf(locks.Accept(t.Context(), ticket)), core.ErrChanged)
	release(t, got)
	wantError(t, errorOf(locks.Accept(t.Context(), ticket)), core.ErrChanged)
}

// A lease that cannot be handed over stays as it is.
func TestHandoverRefusesMistakes(t *testing.T) {
	t.Parallel()
	plain := newLocker(t, newEmbedded(t), withoutResend(core.WithMaxHold(time.Minute))...)
	locks := plain.With(core.WithFencing(true))
	taking := func(t *testing.T, by *core.Locker) *core.Lease { t.Helper(); return lock(t, by, "k") }
	for name, test := range map[string]struct {
		lease func(t *testing.T) *core.Lease
		grace time.Duration
		want  string
	}{
		"no fence":       {func(t *testing.T) *core.Lease { t.Helper(); return taking(t, plain) }, time.Minute, "set WithFencing"},
		"shared":         {func(t *testing.T) *core.Lease { t.Helper(); return taking(t, locks.With(core.WithShared(true))) }, time.Minute, "a shared lease"},
		"no unit":        {func(t *testing.T) *core.Lease { t.Helper(); return taking(t, locks) }, 30, "write a unit"},
		"no grace":       {func(t *testing.T) *core.Lease { t.Helper(); return taking(t, locks) }, 0, "below 1ms"},
		"negative grace": {func(t *testing.T) *core.Lease { t.Helper(); return taking(t, locks) }, -time.Second, "below 1ms"},
		"nested": {func(t *testing.T) *core.Lease {
			t.Helper()
			outer := taking(t, locks)
			t.Cleanup(func() { noError(t, outer.Release(context.Background())) })
			inner, err := locks.Lock(outer.Context(), "k")
			noError(t, err)
			return inner
		}, time.Minute, "nested"},
		"an attempt": {func(t *testing.T) *core.Lease {
			t.Helper()
			a := begin(t, locks, "k")
			t.Cleanup(func() { noError(t, a.Abort(context.Background())) })
			return a.Lease()
		}, time.Minute, "an idempotent request"},
		"detached": {func(t *testing.T) *core.Lease {
			t.Helper()
			lease := taking(t, locks)
			work, err := core.Detach(lease.Context())
			noError(t, err)
			t.Cleanup(func() { noError(t, work.Release(context.Background())) })
			return lease
		}, time.Minute, "a lease of its LeaseSet"},
	} {
		t.Run(name, func(t *testing.T) {
			lease := test.lease(t)
			ticket, err := lease.Handover(t.Context(), test.grace)
			if err == nil || !strings.HasPrefix(err.Error(), "reqlock: Handover: ") || !strings.Contains(err.Error(), test.want) || !ticket.IsZero() {
				t.Errorf("%v, %v", ticket, err)
			}
			noError(t, lease.Context().Err())
			release(t, lease)
		})
	}
	var none *core.Lease
	wantError(t, errorOf(none.Handover(t.Context(), time.Minute)), core.ErrNoLease)
	ended := taking(t, locks)
	release(t, ended)
	wantError(t, errorOf(ended.Handover(t.Context(), time.Minute)), core.ErrLost)

	live := taking(t, locks)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, errorOf(live.Handover(gone, time.Minute)), context.Canceled)
	noError(t, live.Context().Err())
	release(t, live)

	for want, accept := range map[string]func() (*core.Lease, error){
		"the ticket is empty": func() (*core.Lease, error) { return locks.Accept(t.Context(), core.Ticket{}) },
		"set WithFencing": func() (*core.Lease, error) {
			ticket, err := taking(t, locks).Handover(t.Context(), time.Minute)
			noError(t, err)
			return plain.Accept(t.Context(), ticket)
		},
	} {
		if lease, err := accept(); lease != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want %q", lease, err, want)
		}
	}
}

// The leases of work that Detach has made can be handed over, one after the other.
func TestHandoverOfDetachedLeases(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t), withoutResend(core.WithMaxHold(time.Minute), core.WithFencing(true))...)
	var work *core.LeaseSet
	noError(t, locks.DoAll(t.Context(), []string{"a", "b"}, func(ctx context.Context) (err error) {
		work, err = core.Detach(ctx)
		return err
	}))
	for _, lease := range work.Leases() {
		ticket, err := lease.Handover(t.Context(), time.Minute)
		noError(t, err)
		got, err := locks.Accept(t.Context(), ticket)
		noError(t, err)
		if got.Key() != lease.Key() {
			t.Errorf("%v, want %v", got, lease)
		}
		release(t, got)
	}
	wantError(t, context.Cause(work.Context()), core.ErrHandedOver)
	noError(t, work.Release(t.Context()))
}

// A function of Do may hand its lock over: Do returns the result of the function.
func TestDoReturnsAfterHandover(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t), withoutResend(core.WithFencing(true))...)
	for name, want := range map[string]error{"nil": nil, "an error": errors.New("x")} {
		if err := locks.Do(t.Context(), name, func(ctx context.Context) error {
			lease, _ := core.LeaseFromContext(ctx)
			return errors.Join(errorOf(lease.Handover(ctx, time.Minute)), want)
		}); (err == nil) != (want == nil) || errors.Is(err, core.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A handover whose reply is lost is sent again, and gives the ticket. So is an accept, which finds
// the token of its first send.
func TestTicketSurvivesLostReplies(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]redistest.Mode{"connection closed": redistest.CloseConn, "connection open": redistest.KeepConn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, proxy, rdb := behindProxy(t)
			// Half of the timeout passes before a command is sent again; the other half is for a busy machine.
			locks := newLocker(t, rdb, core.WithFencing(true), core.WithCommandTimeout(6*time.Second))
			lease := lock(t, locks, "k")
			handover := proxy.DropReply(redistest.Named("EVAL"), mode) // EVALSHA runs nothing: the server does not know the script
			ticket, err := lease.Handover(t.Context(), time.Minute)
			noError(t, err)
			accept := proxy.DropReply(redistest.Named("EVAL"), mode)
			got, err := locks.Accept(t.Context(), ticket)
			noError(t, err)
			suite.AwaitClosed(t, "the reply to Handover is lost", handover)
			suite.AwaitClosed(t, "the reply to Accept is lost", accept)
			release(t, got)
			if server.Client(t).Exists(t.Context(), "reqlock:k").Val() != 0 {
				t.Error("the key is locked")
			}
		})
	}
}

// Without any reply, nobody gets a ticket. The lease has ended nevertheless.
func TestHandoverWithoutReplyEndsTheLease(t *testing.T) {
	t.Parallel()
	_, proxy, rdb := behindProxy(t)
	locks := newLocker(t, rdb, core.WithFencing(true), core.WithTTL(time.Minute))
	lease := lock(t, locks, "k")
	proxy.Partition()
	ticket, err := lease.Handover(t.Context(), time.Minute)
	wantError(t, err, core.ErrUnavailable)
	wantError(t, context.Cause(lease.Context()), core.ErrHandedOver)
	wantError(t, lease.Release(t.Context()), core.ErrUnavailable)
	if !ticket.IsZero() {
		t.Error("there is a ticket")
	}
	proxy.Heal()
	release(t, lock(t, locks, "k")) // long before the TTL and the grace end
}

// WithMaxHold counts from the acceptance.
func TestMaxHoldCountsFromTheAcceptance(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, locks *core.Locker) {
		lease := lock(t, locks, "k")
		time.Sleep(50 * time.Second)
		ticket, err := lease.Handover(t.Context(), time.Hour)
		noError(t, err)
		time.Sleep(50 * time.Minute)
		got, err := locks.Accept(t.Context(), ticket)
		noError(t, err)
		time.Sleep(59 * time.Second)
		noError(t, got.Context().Err())
		time.Sleep(2 * time.Second)
		wantError(t, context.Cause(got.Context()), core.ErrMaxHold)
		wantError(t, errorOf(got.Handover(t.Context(), time.Minute)), core.ErrMaxHold)
		wantError(t, errorOf(got.Handover(got.Context(), time.Minute)), core.ErrMaxHold) // not that its context has ended
		wantError(t, got.Release(t.Context()), core.ErrMaxHold)
	}, core.WithFencing(true), core.WithMaxHold(time.Minute))
}

// Close does not wait for a lease that was handed over, and the ticket outlives the Locker.
func TestTicketOutlivesItsLocker(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	service := core.Must(core.New(rdb, withoutResend(core.WithFencing(true))...))
	ticket, err := lock(t, service, "k").Handover(t.Context(), time.Minute)
	noError(t, err)
	noError(t, service.Close(t.Context()))
	wantError(t, errorOf(service.Accept(t.Context(), ticket)), core.ErrClosed)
	worker := newLocker(t, rdb, withoutResend(core.WithFencing(true))...)
	lease, err := worker.Accept(t.Context(), ticket)
	noError(t, err)
	release(t, lease)
}
