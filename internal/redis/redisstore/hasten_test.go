package redisstore

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// longReads keeps the client from ending a command by itself. What a test leaves
// behind then ends with its connection.
func longReads(o *redis.Options) { o.ReadTimeout = longBound }

// sendAgain sends again what has no reply, as if half of its bound were over.
func sendAgain(s *syncStore) {
	hasten(s, func(x *call) { x.half, x.resendAt = 0, time.Now() })
}

// giveUp gives up what has no reply, as if its bound were over.
func giveUp(s *syncStore) {
	hasten(s, func(x *call) { x.deadline = time.Now() })
}

// hasten changes the times of what is under way, and has each lane look at it. So
// a test need not wait for a bound, which a busy machine may let pass too early.
func hasten(s *syncStore, change func(*call)) {
	all := s.all()
	every := slices.Clone(all[:])
	s.mu.Lock()
	for _, master := range s.masters {
		all := master.all()
		every = append(every, all[:]...)
	}
	s.mu.Unlock()
	for _, l := range every {
		l.mu.Lock()
		for _, x := range l.exchanges {
			change(x)
		}
		l.mu.Unlock()
		l.look()
	}
}

// bothHeld runs a transition and gives it up while both sends of its command, which
// has that name, are held back. It returns what lets each of them go, and what the
// transition returned.
func bothHeld(t *testing.T, s *syncStore, proxy *redistest.Proxy, name string, do func() error) (first, second func(), err error) {
	t.Helper()
	first, seenFirst := proxy.HoldCommand(redistest.Named(name))
	second, seenSecond := proxy.HoldCommand(redistest.Named(name))
	t.Cleanup(func() { first(); second() })
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	receive(t, "the first send is held", seenFirst)
	sendAgain(s)
	receive(t, "the second send is held", seenSecond)
	giveUp(s)
	return first, second, receive(t, "it is given up", ended)
}
