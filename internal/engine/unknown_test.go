package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// unknown returns the events of unknown outcomes of all processes.
func (p *processes) unknown() (all []Event) {
	for _, r := range p.events {
		all = append(all, r.of(OutcomeUnknown)...)
	}
	return all
}

func TestOwnUnknownOutcomeIsReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ending  Ending
		fails   string // the transition that the store does not accept
		events  int
		hasLost bool
	}{
		"interrupt":                      {ending: Interrupt, events: 1},
		"interrupt after a loss":         {ending: Interrupt, events: 1, hasLost: true},
		"interrupt without an answer":    {ending: Interrupt, fails: "release", events: 1},
		"commit that fails":              {ending: Commit, fails: "commit", events: 1},
		"commit that fails after a loss": {ending: Commit, fails: "commit", events: 1, hasLost: true},
		"seal that fails":                {ending: Seal, fails: "seal", events: 1},
		"commit":                         {ending: Commit},
		"commit after a loss":            {ending: Commit, hasLost: true},
		"seal":                           {ending: Seal},
		"abort":                          {ending: Abort},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				h := hold(t, p.engines[0], attempt("f", 0))
				if test.hasLost {
					p.server.set("k", "", 0)
					<-h.Context().Done()
				}
				if test.fails != "" {
					failsFor(p.stores[0], 3*time.Second, test.fails)
				}
				time.Sleep(time.Millisecond)
				_, err := h.End(t.Context(), test.ending, answerOf(h))
				got := p.unknown()
				if len(got) != test.events {
					t.Fatalf("events %+v", got)
				}
				for _, event := range got {
					interrupted := test.ending == Interrupt // on purpose, so there is no error to report
					if event.Key != "k" || event.Held < time.Millisecond || interrupted && event.Err != nil || !interrupted && !errors.Is(event.Err, err) {
						t.Errorf("%+v, the ending returned %v", event, err)
					}
				}
				time.Sleep(time.Minute) // the discard of the token ends
				p.checkIdle(t)
			})
		})
	}
}

// Copies in all processes report an attempt that died, until the record notes that one has.
func TestAttemptThatDiedIsReportedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(3)
		p.server.setRecord("k", fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 1})
		for range 3 {
			for _, e := range p.engines {
				_ = refused(t, e, attempt("f", 0))
				synctest.Wait()
			}
		}
		if got := p.unknown(); len(got) != 1 || got[0].Key != "k" || got[0].Held != 0 || got[0].Err != nil {
			t.Errorf("events %+v", got)
		}
		p.server.setRecord("k", fakeRecord{state: 'R', token: "dead:2", fingerprint: []byte("f"), number: 2, reported: "dead:1"})
		_ = refused(t, p.engines[0], attempt("f", 0))
		synctest.Wait()
		if got := p.unknown(); len(got) != 2 {
			t.Errorf("events after another attempt died: %+v", got)
		}
		p.checkIdle(t)
	})
}

// A report that the record could not note is repeated by the next copy.
func TestReportIsRepeatedUntilItIsNoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		p.server.setRecord("k", fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 1})
		p.stores[0].before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "resolve" {
				return errDown
			}
			return nil
		})
		for i, want := range []int{1, 2, 2} {
			_ = refused(t, p.engines[min(i, 1)], attempt("f", 0))
			synctest.Wait()
			if got := p.unknown(); len(got) != want {
				t.Errorf("copy %d: events %+v, want %d", i, got, want)
			}
		}
		p.checkIdle(t)
	})
}

// Without an observer the report is left to another process.
func TestReportIsLeftToAProcessWithAnObserver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(2)
		p.server.setRecord("k", fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 1})
		p.engines[0].hooks.Observe = nil
		_ = refused(t, p.engines[0], attempt("f", 0))
		synctest.Wait()
		if got := p.stores[0].count("resolve"); got != 0 {
			t.Errorf("noted %d times", got)
		}
		_ = refused(t, p.engines[1], attempt("f", 0))
		synctest.Wait()
		if got := p.unknown(); len(got) != 1 {
			t.Errorf("events %+v", got)
		}
		p.checkIdle(t)
	})
}

// With Rerun, each run after an attempt that died is reported.
func TestRunAfterAttemptThatDiedIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		p.server.setRecord("k", fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 1})
		r := attempt("f", 0)
		r.Attempt.Rerun = true
		h := hold(t, p.engines[0], r)
		if got := p.unknown(); len(got) != 1 {
			t.Errorf("events %+v of attempt %d", got, h.Number())
		}
		end(t, h, Commit)
		if got := p.unknown(); len(got) != 1 {
			t.Errorf("events %+v after the commit", got)
		}
		p.checkIdle(t)
	})
}

// Close waits until the report is noted: another process would repeat it.
func TestCloseWaitsForTheNoteOfAReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		p.server.setRecord("k", fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 1})
		p.stores[0].before.set(func(transition string, _ storetest.AnyRequest) error {
			if transition == "resolve" {
				time.Sleep(time.Second)
			}
			return nil
		})
		_ = refused(t, p.engines[0], attempt("f", 0))
		if err := p.engines[0].Close(t.Context()); err != nil {
			t.Error(err)
		}
		if record := p.server.record("k"); record.reported != "dead:1" {
			t.Error("the report is not noted")
		}
	})
}
