package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

const (
	ticketToken = "ticket:1"
	grace       = 30 * time.Second
)

// handOver ends a hold, and leaves its key to the ticket.
func handOver(t *testing.T, h *Hold) {
	t.Helper()
	if loss, err := h.Handover(t.Context(), ticketToken, grace); loss != NotLost || err != nil {
		t.Fatalf("handover: loss %v, error %v", loss, err)
	}
}

func accept(t *testing.T, e *Engine, r Request) *Hold {
	t.Helper()
	h, err := e.Accept(t.Context(), ticketToken, r)
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	return h
}

func acceptRefused(t *testing.T, e *Engine, want Reason) {
	t.Helper()
	if _, err := e.Accept(t.Context(), ticketToken, fenced(WaitForever)); reasonOf(t, err) != want {
		t.Errorf("refused with %v, want %v", reasonOf(t, err), want)
	}
}

// A ticket gives the lease to another process, or to another caller of the same one.
func TestTicketGivesTheLeaseToOneAcceptor(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]int{"the same process": 0, "another process": 1} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			h := hold(t, p.engines[0], fenced(0))
			ctx, nested := h.Context(), h.Nest(h.Context())
			handOver(t, h)
			for _, ended := range []context.Context{ctx, nested.Context()} {
				if cause := context.Cause(ended); !errors.Is(cause, lossError{GivenAway}) {
					t.Errorf("the context of the holder ended with %v", cause)
				}
			}
			if loss, err := h.Extend(t.Context(), time.Minute); loss != GivenAway || err != nil {
				t.Errorf("extend: loss %v, error %v", loss, err)
			}
			if loss, err := h.Handover(t.Context(), "ticket:2", grace); loss != GivenAway || err != nil {
				t.Errorf("a second handover: loss %v, error %v", loss, err)
			}
			release(t, h)
			time.Sleep(grace - time.Millisecond)
			next := accept(t, p.engines[to], fenced(0))
			acceptRefused(t, p.engines[1-to], TicketUsed)
			acceptRefused(t, p.engines[to], TicketUsed)
			if next.Fence() <= h.Fence() || next.Token() == h.Token() {
				t.Errorf("fence %d after %d, token %q after %q", next.Fence(), h.Fence(), next.Token(), h.Token())
			}
			sleep(time.Minute) // it is renewed
			if next.Context().Err() != nil || p.server.value("k") != next.Token() {
				t.Errorf("the lease has ended: %v", context.Cause(next.Context()))
			}
			release(t, next)
			p.checkIdle(t)
			var kinds []Kind
			for _, event := range p.events[0].all() {
				kinds = append(kinds, event.Kind)
			}
			if !slices.Equal(kinds[:3], []Kind{Acquired, HandedOver, Released}) {
				t.Errorf("events %v", kinds)
			}
			if got := p.events[to].of(Acquired); got[len(got)-1].Grant != Accepted {
				t.Errorf("events %+v", got)
			}
		})
	}
}

// Nobody accepts: the waiters of both processes get the key after the grace, and not before.
func TestKeyIsFreeAfterTheGrace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], fenced(0))
		here, there := acquiring(t, p.engines[0], request(WaitForever)), acquiring(t, p.engines[1], request(WaitForever))
		begun := time.Now()
		handOver(t, h)
		sleep(grace - time.Millisecond)
		if len(here)+len(there) != 0 || p.server.value("k") != ticketToken {
			t.Fatalf("a waiter got the key after %v", time.Since(begun))
		}
		for _, result := range []<-chan error{here, there} {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
		if late := time.Since(begun) - grace; late > 2*time.Second {
			t.Errorf("the waiters got the key %v after the grace", late)
		}
		acceptRefused(t, p.engines[1], TicketUsed)
		p.checkIdle(t)
	})
}

// Waiters of the process that accepts keep waiting, and get the key after the release.
func TestWaitersBesideAnAcceptedLeaseGetTheKeyLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], fenced(0))
		waits := acquiring(t, p.engines[1], request(WaitForever))
		handOver(t, h)
		next := accept(t, p.engines[1], fenced(0))
		refuses(t, p.engines[1], request(0), Busy)
		sleep(time.Minute)
		if len(waits) != 0 || !next.Alive() {
			t.Fatal("a waiter got the key beside the holder")
		}
		release(t, next)
		if err := <-waits; err != nil {
			t.Error(err)
		}
		p.checkIdle(t)
	})
}

// The context ends before the command leaves, and after the last renewal.
func TestContextEndsBeforeTheHandoverIsSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		h := hold(t, e, fenced(0))
		ctx, renewing := h.Context(), make(chan struct{})
		s.before.set(func(transition string, _ storetest.AnyRequest) error {
			switch transition {
			case "renew":
				<-renewing
			case "handover":
				if ctx.Err() == nil {
					t.Error("the holder acts although the key goes to the ticket")
				}
			}
			return nil
		})
		go func() { _, _ = h.Extend(context.Background(), time.Minute) }()
		synctest.Wait()
		done := make(chan Loss, 1)
		go func() {
			loss, _ := h.Handover(ctx, ticketToken, grace)
			done <- loss
		}()
		synctest.Wait()
		if ctx.Err() == nil || s.begunCount("handover") != 0 {
			t.Errorf("the handover was sent during a renewal, or the context lives: %v", ctx.Err())
		}
		close(renewing)
		if loss := <-done; loss != NotLost || s.value("k") != ticketToken {
			t.Errorf("loss %v, key %q", loss, s.value("k"))
		}
	})
}

// errSilent is a fault without a reply.
var errSilent = &store.Fault{Unknown: true, Temporary: true, Err: errors.New("no reply")}

// A handover without a reply gives no ticket, and frees the key as soon as the server replies.
func TestHandoverWithoutReplyFreesTheKey(t *testing.T) {
	t.Parallel()
	for name, applied := range map[string]bool{"applied": true, "lost": false} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(1)
			e, s := p.engines[0], p.stores[0]
			h := hold(t, e, fenced(0))
			fail := func(string, storetest.AnyRequest) error { return errSilent }
			if applied {
				s.after.set(fail)
			} else {
				s.before.set(fail)
			}
			loss, err := h.Handover(t.Context(), ticketToken, grace)
			if loss != NotLost || err == nil || h.Context().Err() == nil {
				t.Errorf("loss %v, error %v, context %v", loss, err, h.Context().Err())
			}
			s.after.set(nil)
			s.before.set(nil)
			sleep(2 * time.Second)
			p.checkIdle(t)
			if n := len(p.events[0].of(HandedOver)); n != 0 {
				t.Errorf("%d events of a handover that failed", n)
			}
		})
	}
}

// A caller that leaves before the reply gets no ticket, so the key is freed.
func TestHandoverOfCallerThatLeftFreesTheKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		h, reply := hold(t, p.engines[0], fenced(0)), make(chan struct{})
		p.stores[0].after.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "handover" {
				<-reply
			}
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := h.Handover(ctx, ticketToken, grace)
			failed <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(reply)
		synctest.Wait()
		p.checkIdle(t)
	})
}

// A hold that has ended, or has lost its key, gives no ticket.
func TestLostLeaseGivesNoTicket(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(t *testing.T, h *Hold, s *fakeStore)
		want Loss
	}{
		"released":      {func(t *testing.T, h *Hold, _ *fakeStore) { t.Helper(); release(t, h) }, Taken},
		"expired":       {func(_ *testing.T, _ *Hold, s *fakeStore) { s.setDown(true); sleep(time.Minute); s.setDown(false) }, Expired},
		"taken":         {func(_ *testing.T, _ *Hold, s *fakeStore) { s.set("k", "other", time.Minute) }, Taken},
		"held too long": {func(*testing.T, *Hold, *fakeStore) { sleep(time.Hour) }, MaxHoldExceeded},
	} {
		row(t, name, func(t *testing.T) {
			e, s, events := newEngine()
			r := fenced(0)
			if test.want == MaxHoldExceeded {
				r.MaxHold = time.Minute
			}
			h := hold(t, e, r)
			test.end(t, h, s)
			if loss, err := h.Handover(t.Context(), ticketToken, grace); loss != test.want || err != nil {
				t.Errorf("loss %v, error %v, want %v", loss, err, test.want)
			}
			_, _ = h.Release(t.Context())
			synctest.Wait()
			if s.value("k") == ticketToken || len(events.of(HandedOver)) != 0 {
				t.Error("the key waits for a ticket that nobody has")
			}
		})
	}
}

// A repeated accept finds what the one without a reply has done.
func TestAcceptSurvivesALostReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		handOver(t, hold(t, p.engines[0], fenced(0)))
		silent := 2
		p.stores[1].after.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "accept" && silent > 0 {
				silent--
				return errSilent
			}
			return nil
		})
		release(t, accept(t, p.engines[1], fenced(WaitForever)))
		sleep(10 * time.Second) // the token is looked after
		p.checkIdle(t)
	})
}

// A caller that may not wait, or leaves, gets no lease, and the key that it may have taken is freed.
func TestAcceptWithoutReplyFreesTheKey(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"may not wait": false, "leaves": true} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			handOver(t, hold(t, p.engines[0], fenced(0)))
			p.stores[1].after.set(func(string, storetest.AnyRequest) error { return errSilent })
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r := fenced(0)
			if waits {
				r.Wait = WaitForever
			}
			if _, err := p.engines[1].Accept(ctx, ticketToken, r); reasonOf(t, err) != Unavailable {
				t.Error(err)
			}
			p.stores[1].after.set(nil)
			sleep(10 * time.Second)
			p.checkIdle(t)
		})
	}
}

// A server that serves no command refuses a ticket at once, as it refuses new callers.
func TestAcceptFailsFastInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, s, _ := newEngine()
		e.failFast = time.Second
		handOver(t, hold(t, e, fenced(0)))
		s.setDown(true)
		time.Sleep(2 * time.Second)
		begun := time.Now()
		acceptRefused(t, e, Unavailable)
		if took := time.Since(begun); took != 0 {
			t.Errorf("refused after %v", took)
		}
	})
}

// Close ends an accepted lease as any other, and a new accept is refused.
func TestCloseEndsAcceptedLeases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, _, _ := newEngine()
		handOver(t, hold(t, e, fenced(0)))
		h := accept(t, e, fenced(0))
		if err := e.Close(canceledContext()); err == nil || h.Context().Err() == nil {
			t.Errorf("close: %v, context %v", err, h.Context().Err())
		}
		releaseLost(t, h, Closed)
		acceptRefused(t, e, ClosedDown)
		checkNoQueue(t, e)
	})
}
