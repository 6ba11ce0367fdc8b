package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// openCommitOf makes an open commit: the store is away, and comes back by the function.
func openCommitOf(t *testing.T, p *processes, h *Hold, ending Ending) (back func()) {
	t.Helper()
	p.stores[0].before.set(func(string, storetest.AnyRequest) error { return errNoCommitReply })
	h.SetOutcomeName("late")
	if _, err := h.End(t.Context(), ending, answerOf(h)); err == nil {
		t.Error("the commit was accepted")
	}
	if n, _, _ := p.engines[0].OpenCommits(); n == 0 {
		t.Fatal("no commit is open")
	}
	return func() { p.stores[0].before.set(nil) }
}

// lateResult returns the event about the end of the open commit.
func lateResult(t *testing.T, r *recorder) Event {
	t.Helper()
	synctest.Wait()
	late := slices.DeleteFunc(r.of(Committed), func(e Event) bool { return !e.Repeated })
	if len(late) != 1 || late[0].Context != nil || !late[0].Attempt || late[0].Key != "k" {
		t.Fatalf("late results: %+v", late)
	}
	return late[0]
}

// While a commit is open, no attempt begins in the process, also if the store comes back empty.
func TestCopiesOfOpenCommit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ending      Ending
		lost        bool // the lease was lost before the commit
		fingerprint string
		want        Reason
		waiting     Reason
	}{
		"a copy":                     {EndCommit, false, "f", Done, Done},
		"a copy of a sealed request": {EndDone, false, "f", Unreplayable, Unreplayable},
		"another request":            {EndCommit, false, "g", Unavailable, Mismatch},
		"a copy after a lost lease":  {EndCommit, true, "f", Done, Done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, waiting := newProcesses(1), &callers{}
				h := hold(t, p.engines[0], attempt("f", 0))
				if test.lost {
					p.server.set("k", "", 0)
					<-h.Context().Done()
				}
				p.server.set("k", "", 0)
				p.server.setRecord("k", fakeRecord{}) // as a server that has lost its data
				p.stores[0].before.set(func(string, storetest.AnyRequest) error { return errNoCommitReply })
				for _, r := range []Request{attempt(test.fingerprint, WaitForever), attempt(test.fingerprint, time.Minute)} {
					waiting.join(t, p.engines[0], 1, r)
				}
				begun := p.stores[0].begunCount("begin")
				back := openCommitOf(t, p, h, test.ending)
				synctest.Wait()
				sent := p.stores[0].begunCount("begin")
				waiting.note(func() {
					if waiting.reasons[test.waiting] != 2 {
						t.Errorf("of the callers that wait: %v", waiting.reasons)
					}
				})
				refusal := refused(t, p.engines[0], attempt(test.fingerprint, 0))
				if refusal.Reason != test.want || (string(refusal.Record) == string(answerOf(h))) != (test.want == Done) {
					t.Errorf("%v, %q", refusal.Reason, refusal.Record)
				}
				if got := p.stores[0].begunCount("begin"); got != sent || !test.lost && got != begun {
					t.Errorf("began %d times, %d before the commit, %d when it was open", got, begun, sent)
				}
				back()
				time.Sleep(2 * maxOpenPause)
				if late := lateResult(t, p.events[0]); late.Err != nil || late.Loss != NotLost || late.Name != "late" || len(p.events[0].of(Restored)) != 1 {
					t.Errorf("late: %+v", late)
				}
				if got, want := p.server.record("k").state, map[Ending]rune{EndCommit: 'D', EndDone: 'U'}[test.ending]; got != want {
					t.Errorf("the record is %c, want %c", got, want)
				}
				p.checkIdle(t)
			})
		})
	}
}

// What ends an open commit, besides its acceptance.
func TestEndOfOpenCommit(t *testing.T) {
	t.Parallel()
	resolve := func(how store.Resolution) func(t *testing.T, p *processes, h *Hold, back func()) {
		return func(t *testing.T, p *processes, h *Hold, _ func()) {
			t.Helper()
			p.server.set("k", "", 0) // expires
			if status, err := p.engines[1].Resolve(t.Context(), ResolveRequest{Key: "k", Seen: h.Token(), Resolution: how}); status != Resolved || err != nil {
				t.Errorf("%v, %v", status, err)
			}
		}
	}
	for name, test := range map[string]struct {
		end    func(t *testing.T, p *processes, h *Hold, back func())
		loss   Loss
		fault  bool
		record rune
	}{
		"another attempt": {func(t *testing.T, p *processes, _ *Hold, _ func()) {
			t.Helper()
			p.server.set("k", "", 0)
			p.server.setRecord("k", fakeRecord{})
			end(t, hold(t, p.engines[1], attempt("f", 0)), EndDone)
		}, Taken, false, 'U'},
		"an operator's word of another process: done":   {resolve(ResolveDone), Taken, false, 'U'},
		"an operator's word of another process: forget": {resolve(ResolveNotDone), Taken, false, 'A'},
		"an operator's word in the process, on an empty server afterwards": {func(t *testing.T, p *processes, h *Hold, back func()) {
			t.Helper()
			p.server.set("k", "", 0)
			p.stores[0].before.set(func(transition string, _ storetest.AnyRequest) error {
				if transition == "commit" {
					return errNoCommitReply
				}
				return nil
			})
			if status, err := forget(p.engines[0], h.Token()); status != Resolved || err != nil {
				t.Errorf("%v, %v", status, err)
			}
			if n, _, _ := p.engines[0].OpenCommits(); n != 0 {
				t.Error("the commit goes on")
			}
			p.server.setRecord("k", fakeRecord{})
			back()
		}, Taken, false, 0},
		"the retention": {func(*testing.T, *processes, *Hold, func()) { time.Sleep(time.Hour) }, NotLost, true, 'R'},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(2)
				h := hold(t, p.engines[0], attempt("f", 0))
				back := openCommitOf(t, p, h, EndCommit)
				test.end(t, p, h, back)
				back()
				time.Sleep(2 * maxOpenPause)
				if late := lateResult(t, p.events[0]); late.Loss != test.loss || (late.Err != nil) != test.fault || late.GoesOn {
					t.Errorf("late: %+v", late)
				}
				if n := len(p.events[0].of(OutcomeUnknown)); (n == 2) != test.fault {
					t.Errorf("%d unknown outcomes", n)
				}
				if got := p.server.record("k").state; got != test.record {
					t.Errorf("the record is %c, want %c", got, test.record)
				}
				p.checkIdle(t)
			})
		})
	}
}

// An attempt that has lost its lease ends while the next one runs. Both commits fail. No copy gets
// either answer until the store has decided.
func TestTwoOpenCommitsOfOneKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		r := attempt("f", 0)
		r.Attempt.Rerun = true
		first := hold(t, p.engines[0], r)
		p.server.set("k", "", 0)
		<-first.Context().Done()
		second := hold(t, p.engines[0], r)
		back := openCommitOf(t, p, first, EndCommit)
		if refusal := refused(t, p.engines[0], r); refusal.Reason != Unavailable {
			t.Errorf("while the second one runs: %v", refusal.Reason)
		}
		openCommitOf(t, p, second, EndCommit)
		if n, _, _ := p.engines[0].OpenCommits(); n != 2 {
			t.Errorf("%d open commits", n)
		}
		if refusal := refused(t, p.engines[0], r); refusal.Reason != Unavailable {
			t.Errorf("after both: %v", refusal.Reason)
		}
		back()
		time.Sleep(3 * maxOpenPause)
		if refusal := refused(t, p.engines[0], r); string(refusal.Record) != string(answerOf(second)) {
			t.Errorf("%v, %q", refusal.Reason, refusal.Record)
		}
		p.checkIdle(t)
	})
}

// While the store is known to serve no command, an open commit is not sent.
func TestOpenCommitWaitsForTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], attempt("f", 0))
		p.stores[0].setDown(true)
		if _, err := h.End(t.Context(), EndCommit, answerOf(h)); err == nil {
			t.Error("the commit was accepted")
		}
		time.Sleep(failFast)
		sent := p.stores[0].begunCount("commit")
		time.Sleep(time.Minute)
		if got := p.stores[0].begunCount("commit"); got != sent {
			t.Errorf("sent %d times", got-sent)
		}
		if refusal := refused(t, p.engines[0], attempt("f", 0)); refusal.Reason != Done {
			t.Errorf("a copy: %v", refusal.Reason)
		}
		p.stores[0].setDown(false)
		time.Sleep(2 * maxOpenPause)
		if late := lateResult(t, p.events[0]); late.Err != nil {
			t.Errorf("late: %+v", late)
		}
		p.checkIdle(t)
	})
}
