package pipeline

import (
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// resendNow sends again what has no reply, as if half of its bound were over.
func resendNow(s *syncStore) {
	changeCalls(s, func(x *Call) { x.resendAfter, x.resendAt = 0, time.Now() })
}

// expireNow gives up what has no reply, as if its bound were over.
func expireNow(s *syncStore) {
	changeCalls(s, func(x *Call) { x.deadline = time.Now() })
}

// changeCalls changes the times of what is under way, and has each lane look at it. So
// a test need not wait for a bound, which a busy machine may let pass too early.
func changeCalls(s *syncStore, change func(*Call)) {
	all := s.pipeline.all()
	every := slices.Clone(all[:])
	s.pipeline.mu.Lock()
	for _, master := range s.pipeline.masters {
		all := master.all()
		every = append(every, all[:]...)
	}
	s.pipeline.mu.Unlock()
	for _, l := range every {
		l.mu.Lock()
		for _, x := range l.calls {
			change(x)
		}
		l.mu.Unlock()
		l.checkDeadlines()
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
	storetest.Receive(t, "the first send is held", seenFirst)
	resendNow(s)
	storetest.Receive(t, "the second send is held", seenSecond)
	expireNow(s)
	return first, second, storetest.Receive(t, "it is given up", ended)
}
