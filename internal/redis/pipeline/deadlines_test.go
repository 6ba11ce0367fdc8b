package pipeline

import (
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// resendNow sends each unanswered call again, as if half of its bound were over.
func resendNow(s *syncStore) {
	changeCalls(s, func(x *Call) { x.resendAfter, x.resendAt = 0, time.Now() })
}

// expireNow fails each unanswered call, as if its bound were over.
func expireNow(s *syncStore) {
	changeCalls(s, func(x *Call) { x.deadline = time.Now() })
}

// changeCalls changes the times of the unanswered calls, and makes each lane check its
// deadlines. So a test does not depend on bounds, which may pass too early on a busy
// machine.
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

// bothHeld runs a transition that fails while both sends of its command, which has that
// name, are held. It returns the functions that release them, and the transition's error.
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
