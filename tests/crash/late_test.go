package crash

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A letter is a command of a process that was killed, which the network still
// holds.
type letter struct {
	*crash
	token   string
	release func()
}

// sent lets a process die as it sends a command.
func sent(s *site, t *testing.T, survivors []*process, policy string, pick matcher) *letter {
	t.Helper()
	l := &letter{crash: &crash{site: s, t: t, victim: s.open(t, nil), survivors: survivors}}
	l.first = question{policy: policy, key: fmt.Sprintf("late-%d", l.victim.number)}
	l.release = whenLost(l.victim.proxy, func(command []string) bool {
		picked := pick(command)
		if picked {
			l.token = tokenOf(command)
		}
		return picked
	}, l.kill)
	if a, err := s.ask(l.victim, l.first); err == nil {
		t.Errorf("the client of the crashed process got %v", a)
	}
	l.kill() // it is dead, and what was done about it is done
	return l
}

// arrive lets the command arrive, and returns when Redis has executed it.
func (l *letter) arrive() {
	l.t.Helper()
	l.witness.settle(l.t)
	before := l.witness.ran(l.token)
	l.release()
	await(l.t, "the late command is executed", func() bool { return l.witness.ran(l.token) > before })
}

// duringNext makes f run while the handler runs in a survivor.
func (l *letter) duringNext(f func()) {
	l.ledger.hook(l.first.key, func(v visit) bool {
		if v.Charge && v.Process != l.victim.number {
			f()
		}
		return true
	})
}

// What a dead process has sent arrives after its death.
//
//faults:row 45, 46
func TestACommandOfTheDeadArrivesLate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		policy  string
		pick    matcher
		play    func(l *letter)
		effects int
	}{
		"a begin, after the request is done": {reject, isBegin, func(l *letter) {
			l.wantNext("fine")
			l.arrive()
			if l.held(l.first) {
				l.t.Error("the dead holds the lock")
			}
			l.wantNext("replayed", "replayed")
		}, 1},
		"a begin, while another attempt runs": {reject, isBegin, func(l *letter) {
			l.duringNext(l.arrive)
			l.wantNext("fine", "replayed")
		}, 1},
		"a begin, before any other": {reject, isBegin, func(l *letter) {
			l.arrive()
			l.wantNext("outcome_unknown", "outcome_unknown")
		}, 0},
		"a begin, before one that may run again": {rerun, isBegin, func(l *letter) {
			l.arrive()
			l.wantNext("fine", "replayed")
		}, 1},
		"a begin, after the key was freed": {reject, isBegin, func(l *letter) {
			l.resolve(l.first) // there is nothing to free
			l.arrive()
			l.wantNext("outcome_unknown")
		}, 0},
		"a commit, before the lease has run out": {reject, isCommit, func(l *letter) {
			l.arrive()
			l.wantNext("replayed", "replayed")
		}, 1},
		"a commit, after its outcome was unknown": {reject, isCommit, func(l *letter) {
			l.wantNext("outcome_unknown")
			l.arrive()
			l.wantNext("replayed", "replayed")
		}, 1},
		"a commit, while another attempt runs": {rerun, isCommit, func(l *letter) {
			l.duringNext(l.arrive)
			l.wantNext("fine", "replayed")
		}, 2},
		"a commit, after another attempt is done": {rerun, isCommit, func(l *letter) {
			l.wantNext("fine")
			l.arrive()
			l.wantNext("replayed", "replayed")
		}, 2},
		"a commit, while the one runs that was let in": {reject, isCommit, func(l *letter) {
			l.wantNext("outcome_unknown")
			l.resolve(l.first)
			l.duringNext(l.arrive)
			l.wantNext("fine", "replayed")
		}, 2},
		"a commit, after the key was freed": {reject, isCommit, func(l *letter) {
			l.wantNext("outcome_unknown")
			l.resolve(l.first)
			l.arrive()
			l.wantNext("replayed", "replayed")
		}, 1},
	}
	s := newSite(t, "net/http")
	survivors := []*process{s.open(t, nil)}
	s.warm(survivors[0])
	played := newCrowd(8)
	for name, test := range tests {
		played.play(t, name, func(t *testing.T) {
			l := sent(s, t, survivors, test.policy, test.pick)
			test.play(l)
			told := s.story(l.first, l.answers, survivors...)
			for _, fault := range told.faults() {
				t.Error(fault)
			}
			if len(told.effects) != test.effects {
				t.Errorf("charges %+v, want %d", told.effects, test.effects)
			}
		})
	}
	played.wait()
	survivors[0].stop()
	s.wantTidy(t)
}

// A key is not freed while the attempt may run of which nobody knows that it is
// dead.
func TestTheKeyOfTheDeadIsFreedAfterItsLease(t *testing.T) {
	t.Parallel()
	s := newSite(t, "net/http")
	survivors := []*process{s.open(t, nil)}
	s.warm(survivors[0])
	s.orders.TTL = 10 * time.Minute
	l := sent(s, t, survivors, reject, isCommit)
	key := s.framework.endpoint(l.first.policy, l.first.key)
	if err := s.operator.Resolve(t.Context(), key); !errors.Is(err, core.ErrBusy) {
		t.Errorf("resolve: %v", err)
	}
	hasty := l.first
	hasty.hasty = true
	if a := l.mustAsk(survivors[0], hasty); a.Code != "busy" {
		t.Errorf("while the key is held: %v", a)
	}
	s.admin.Del(t.Context(), s.lock(l.first)) // as its TTL would
	l.wantNext("outcome_unknown")
	l.resolve(l.first)
	l.wantNext("fine", "replayed")
	survivors[0].stop()
}
