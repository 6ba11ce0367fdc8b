package pipeline

import (
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// resendNow makes each lane send its unanswered calls again, as after half of their bounds.
func resendNow(s *syncStore) {
	changeCalls(s, func(c *Call) { c.resendAfter, c.resendAt = 0, time.Now() })
}

// expireNow makes each lane fail its unanswered calls, as after their bounds.
func expireNow(s *syncStore) {
	changeCalls(s, func(c *Call) { c.deadline = time.Now() })
}

// changeCalls changes the times of the unanswered calls, and makes each lane check its
// deadlines. With it the bounds of a test can be so long that they never end early on a busy
// machine.
func changeCalls(s *syncStore, change func(*Call)) {
	shared := s.pipeline.all()
	lanes := slices.Clone(shared[:])
	s.pipeline.mu.Lock()
	for _, master := range s.pipeline.masters {
		ofMaster := master.all()
		lanes = append(lanes, ofMaster[:]...)
	}
	s.pipeline.mu.Unlock()
	for _, l := range lanes {
		l.checkNow(change)
	}
}

// checkNow changes the times of the unanswered calls, and checks their deadlines.
func (l *lane) checkNow(change func(*Call)) {
	l.mu.Lock()
	now := time.Now()
	for i := range l.calls {
		change(l.calls[i].call)
		l.calls[i].at = now
	}
	l.mu.Unlock()
	l.checkDeadlines()
}

// holdBothSends runs a transition that expires while the proxy holds both sends of its
// command. It returns the functions that release the sends, and the error of the transition.
func holdBothSends(t *testing.T, s *syncStore, proxy *redistest.Proxy, name string, do func() error) (first, second func(), err error) {
	t.Helper()
	first, firstHeld := proxy.HoldCommand(redistest.Named(name))
	second, secondHeld := proxy.HoldCommand(redistest.Named(name))
	t.Cleanup(func() { first(); second() })
	answered := make(chan error, 1)
	go func() { answered <- do() }()
	suite.Receive(t, "the first send is held", firstHeld)
	resendNow(s)
	suite.Receive(t, "the second send is held", secondHeld)
	expireNow(s)
	return first, second, suite.Receive(t, "the call expires", answered)
}
