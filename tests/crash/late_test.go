package crash

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// A lateCommand is a command of a killed process. The network still holds it.
type lateCommand struct {
	*crashCase
	token   string
	release func()
}

func newLateCommand(s *testbed, t *testing.T, survivors []*process, policy string, pick matcher) *lateCommand {
	t.Helper()
	l := &lateCommand{crashCase: &crashCase{testbed: s, t: t, victim: s.start(t, nil), survivors: survivors}}
	l.first = request{policy: policy, key: fmt.Sprintf("late-%d", l.victim.number)}
	l.release = atLostCommand(l.victim.proxy, func(command []string) bool {
		picked := pick(command)
		if picked {
			l.token = tokenOf(command)
		}
		return picked
	}, l.kill)
	if a, err := s.ask(l.victim, l.first); err == nil {
		t.Errorf("the client of the killed process got %v", a)
	}
	l.kill() // waits until the kill is complete
	return l
}

// deliver delivers the command, and returns when Redis has executed it.
func (l *lateCommand) deliver() {
	l.t.Helper()
	l.monitor.sync(l.t)
	before := l.monitor.ran(l.token)
	l.release()
	suite.Eventually(l.t, "the late command is executed", func() bool { return l.monitor.ran(l.token) > before })
}

func (l *lateCommand) duringNextRun(f func()) {
	l.ledger.hook(l.first.key, func(v ledgerCall) bool {
		if v.Charge && v.Process != l.victim.number {
			f()
		}
		return true
	})
}

// operatorsText is the body of an operator's answer.
const operatorsText = "charge-by-hand"

func (l *lateCommand) operatorsAnswer() core.Resolution {
	l.t.Helper()
	answer, err := nethttplock.NewAnswer(http.StatusCreated, nil, []byte(operatorsText))
	if err != nil {
		l.t.Fatal(err)
	}
	return core.Answered(answer)
}

// mustResolveAs says what became of the request.
func (l *lateCommand) mustResolveAs(resolution core.Resolution) {
	l.t.Helper()
	if err := l.resolveAs(l.t.Context(), l.first, resolution); err != nil {
		l.t.Errorf("resolve: %v", err)
	}
}

// raceWithCommit resolves the outcome at the moment at which the command is delivered. One of
// the two is first, and the other one changes nothing.
func (l *lateCommand) raceWithCommit(resolution core.Resolution) {
	l.t.Helper()
	seen, err := l.operator.ReadRecord(l.t.Context(), l.framework.endpoint(l.first.policy, l.first.key))
	if err != nil || seen.State != core.StateUnknown {
		l.t.Errorf("outcome %+v, %v", seen, err)
	}
	resolved := make(chan error, 1)
	go func() {
		resolved <- l.operator.Resolve(l.t.Context(), l.framework.endpoint(l.first.policy, l.first.key), resolution, seen.Attempt)
	}()
	l.deliver()
	if err := suite.Receive(l.t, "the resolution returns", resolved); err != nil && !errors.Is(err, core.ErrChanged) {
		l.t.Errorf("resolve: %v", err)
	}
}

// A command arrives after the process that sent it was killed.
func TestACommandOfAKilledProcessArrivesLate(t *testing.T) {
	t.Parallel()
	s := newTestbed(t, "net/http")
	survivors := []*process{s.start(t, nil, patiently)}
	s.loadScripts(survivors[0])
	tests := map[string]struct {
		policy  string
		pick    matcher
		run     func(l *lateCommand)
		effects int // -1 is one or two
	}{
		"a begin, after the request is done": {reject, isBegin, func(l *lateCommand) {
			l.wantNext("fine")
			l.deliver()
			if l.isHeld(l.first) {
				l.t.Error("the killed process holds the lock")
			}
			l.wantNext("replayed", "replayed")
		}, 1},
		"a begin, while another attempt runs": {reject, isBegin, func(l *lateCommand) {
			l.duringNextRun(l.deliver)
			l.wantNext("fine", "replayed")
		}, 1},
		"a begin, before any other": {reject, isBegin, func(l *lateCommand) {
			l.deliver()
			l.wantNext("outcome_unknown", "outcome_unknown")
		}, 0},
		"a begin, before one that may run again": {rerun, isBegin, func(l *lateCommand) {
			l.deliver()
			l.wantNext("fine", "replayed")
		}, 1},
		"a begin, after the key was freed": {reject, isBegin, func(l *lateCommand) {
			if err := l.forget(l.t.Context(), l.first); !errors.Is(err, core.ErrNotFound) {
				l.t.Errorf("there is nothing to free: %v", err)
			}
			l.deliver()
			l.wantNext("outcome_unknown")
		}, 0},
		"a commit, before the lease has run out": {reject, isCommit, func(l *lateCommand) {
			l.deliver()
			l.wantNext("replayed", "replayed")
		}, 1},
		"a commit, after its outcome was unknown": {reject, isCommit, func(l *lateCommand) {
			l.wantNext("outcome_unknown")
			l.deliver()
			l.wantNext("replayed", "replayed")
		}, 1},
		"a commit, while another attempt runs": {rerun, isCommit, func(l *lateCommand) {
			l.duringNextRun(l.deliver)
			l.wantNext("fine", "replayed")
		}, 2},
		"a commit, after another attempt is done": {rerun, isCommit, func(l *lateCommand) {
			l.wantNext("fine")
			l.deliver()
			l.wantNext("replayed", "replayed")
		}, 2},
		"a commit, while an attempt runs after the key was freed": {reject, isCommit, func(l *lateCommand) {
			l.wantNext("outcome_unknown")
			l.resolve(l.first)
			l.duringNextRun(l.deliver)
			l.wantNext("fine", "replayed")
		}, 2},
		"a commit, after the key was freed": {reject, isCommit, func(l *lateCommand) {
			l.wantNext("outcome_unknown")
			l.resolve(l.first)
			l.deliver()
			l.wantNext("fine", "replayed")
		}, 2},
		"a commit, after an operator has said that the request is done": {reject, isCommit, func(l *lateCommand) {
			l.wantNext("outcome_unknown")
			l.mustResolveAs(core.Done())
			l.deliver()
			l.wantNext("completed_unreplayable", "completed_unreplayable")
		}, 1},
		"a commit, after an operator has answered the request": {reject, isCommit, func(l *lateCommand) {
			l.wantNext("outcome_unknown")
			l.mustResolveAs(l.operatorsAnswer())
			l.deliver()
			l.wantNext("replayed", "replayed")
			if got := l.answers[len(l.answers)-1].Body; got != operatorsText {
				l.t.Errorf("the copy got %q", got)
			}
		}, 1},
		"a commit, while an operator answers the request": {reject, isCommit, func(l *lateCommand) {
			l.wantNext("outcome_unknown")
			l.raceWithCommit(l.operatorsAnswer())
			l.wantNext("replayed", "replayed")
		}, 1},
		"a commit, while an operator frees the key": {reject, isCommit, func(l *lateCommand) {
			l.wantNext("outcome_unknown")
			l.raceWithCommit(core.NotDone())
			if next := l.outcome(survivors[0]); next != "fine" && next != "replayed" {
				l.t.Errorf("got %q", next)
			}
			l.wantNext("replayed")
		}, -1},
	}
	t.Run("arrives", func(t *testing.T) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l := newLateCommand(s, t, survivors, test.policy, test.pick)
				test.run(l)
				seen := s.observe(l.first, l.answers, survivors...)
				for _, violation := range seen.Violations() {
					t.Error(violation)
				}
				if len(seen.Effects) != test.effects && test.effects >= 0 {
					t.Errorf("charges %+v, want %d", seen.Effects, test.effects)
				}
			})
		}
	})
	survivors[0].stop()
	s.wantNoLocksLeft(t)
}

// A killed process may still run, as far as others know. So its key is not freed before its
// lease ends.
func TestAKilledProcessHoldsItsKeyUntilItsLeaseEnds(t *testing.T) {
	t.Parallel()
	s := newTestbed(t, "net/http")
	survivors := []*process{s.start(t, nil, patiently)}
	s.loadScripts(survivors[0])
	s.orders.TTL = 10 * time.Minute
	l := newLateCommand(s, t, survivors, reject, isCommit)
	for _, resolution := range []core.Resolution{core.NotDone(), core.Done()} {
		if err := s.resolveAs(t.Context(), l.first, resolution); !errors.Is(err, core.ErrBusy) {
			t.Errorf("resolve: %v", err)
		}
	}
	atOnce := l.first
	atOnce.nowait = true
	if a := l.mustAsk(survivors[0], atOnce); a.Code != "busy" {
		t.Errorf("while the key is held: %v", a)
	}
	s.admin.Del(t.Context(), s.lock(l.first)) // as the end of its TTL does
	l.wantNext("outcome_unknown")
	l.resolve(l.first)
	l.wantNext("fine", "replayed")
	survivors[0].stop()
}
