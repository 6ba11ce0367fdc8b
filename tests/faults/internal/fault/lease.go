package fault

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic/client"
)

// revokeFaults returns the fault in which an operator revokes leases of holders that live. The
// holders lose their leases. No loss of data is declared: it would excuse a second holder beside the first one.
func revokeFaults() []Fault {
	return []Fault{{
		Name: "lease-is-revoked", On: withOneCopy(),
		Inject: repeat(6, func(s *System) {
			operator, err := inspect.New(s.Admin, inspect.WithObserver(func(core.Event) {}))
			if err != nil {
				s.Fatalf("the operator: %v", err)
			}
			random := s.forkRandom()
			s.during("the lease is revoked", nil, func() {
				s.await("a lease to revoke", func() bool { return s.revoke(operator, s.Keys[random.IntN(len(s.Keys))]) })
				s.runFor(1, 1.2) // the holder learns of it within a third of a TTL, and the tombstone ends after one
			})
		}),
	}}
}

// revoke revokes the leases of a lock, if it is held, and reports whether there was one.
func (s *System) revoke(operator *inspect.Inspector, key string) bool {
	lock, err := operator.Lock(s.Context(), key)
	if err != nil || len(lock.Holders) == 0 || lock.Holders[0].Kind != inspect.HolderProcess {
		return false
	}
	return operator.Revoke(s.Context(), lock) == nil
}

// ticketFaults returns the fault in which another program waits for a lock among the clients, hands its
// lease over, and then accepts the ticket once, with two workers at once, too late or never. The clients
// must be served after that.
func ticketFaults() []Fault {
	return []Fault{{
		Name: "lease-is-handed-over", On: withOneCopy(),
		Inject: repeat(3, func(s *System) {
			random := s.forkRandom()
			for _, workers := range []int{1, 2, 0} {
				key := s.Keys[random.IntN(len(s.Keys))]
				s.during("a lease is handed over", nil, func() { s.handOver(key, workers) })
			}
		}),
	}}
}

// newLocker returns a Locker of another program, with the fencing numbers of the clients, and a
// function that closes it.
func (s *System) newLocker() (locks *core.Locker, closes func()) {
	locks, err := core.New(s.Admin, core.WithTTL(s.TTL), core.WithFencing(true), core.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		s.Fatalf("the other program: %v", err)
	}
	return locks, func() { _ = locks.Close(context.WithoutCancel(s.Context())) }
}

// handOver takes a lock, hands the lease over, and accepts the ticket at once by so many workers, and then
// once more after the grace. A lease that is lost meanwhile, as on a machine that stands still, ends the round.
func (s *System) handOver(key string, workers int) {
	s.Helper()
	locks, closes := s.newLocker()
	defer closes()
	lease, err := locks.Lock(s.Context(), strings.TrimPrefix(key, client.Prefix))
	if err != nil {
		s.Fatalf("the other program gets no lock: %v", err)
	}
	grace := s.TTL
	ticket, err := lease.Handover(s.Context(), grace)
	if errors.Is(err, core.ErrLost) {
		return
	} else if err != nil {
		s.Fatalf("no ticket: %v", err)
	}
	if lease.Context().Err() == nil {
		s.Errorf("the holder may act beside the ticket")
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	accepted := 0
	for range workers {
		all.Go(func() {
			worker, closes := s.newLocker()
			defer closes()
			next, err := worker.Accept(s.Context(), ticket)
			if err != nil {
				if !errors.Is(err, core.ErrChanged) {
					s.Errorf("the ticket is refused: %v", err)
				}
				return
			}
			mu.Lock()
			accepted++
			mu.Unlock()
			if next.Fence() <= lease.Fence() {
				s.Errorf("the fencing number %d follows %d", next.Fence(), lease.Fence())
			}
			s.sleep(s.TTL / 2)
			if holders := s.holdersOf(key); next.Context().Err() == nil && !slices.Equal(holders, []string{next.Token()}) {
				s.Errorf("others act beside the worker: %d tokens", len(holders))
			}
			if err := next.Release(s.Context()); err != nil && !errors.Is(err, core.ErrLost) {
				s.Errorf("the release of the worker: %v", err)
			}
		})
	}
	all.Wait()
	if accepted > 1 {
		s.Errorf("%d workers have accepted one ticket", accepted)
	}
	s.sleep(grace + grace/5)
	late, err := locks.Accept(s.Context(), ticket)
	if !errors.Is(err, core.ErrChanged) {
		s.Errorf("a ticket was accepted after its grace: %v", err)
		s.sleep(s.TTL / 2)
	}
	_ = late.Release(s.Context())
}
