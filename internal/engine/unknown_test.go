package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
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
		"interrupt":                      {ending: EndUnknown, events: 1},
		"interrupt after a loss":         {ending: EndUnknown, events: 1, hasLost: true},
		"interrupt without an answer":    {ending: EndUnknown, fails: "release", events: 1},
		"commit that fails":              {ending: EndCommit, fails: "commit", events: 1},
		"commit that fails after a loss": {ending: EndCommit, fails: "commit", events: 1, hasLost: true},
		"seal that fails":                {ending: EndDone, fails: "seal", events: 1},
		"commit":                         {ending: EndCommit},
		"commit after a loss":            {ending: EndCommit, hasLost: true},
		"seal":                           {ending: EndDone},
		"abort":                          {ending: EndAbort},
	} {
		row(t, name, func(t *testing.T) {
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
				interrupted := test.ending == EndUnknown // on purpose, so there is no error to report
				if event.Key != "k" || event.Held < time.Millisecond || interrupted && event.Err != nil || !interrupted && !errors.Is(event.Err, err) {
					t.Errorf("%+v, the ending returned %v", event, err)
				}
			}
			time.Sleep(time.Minute) // the discard of the token ends
			p.checkIdle(t)
		})
	}
}

// Copies in all processes report an attempt that died, until the record notes that one has.
func TestAttemptThatDiedIsReportedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
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

// A report that the record could not note is repeated by the next copy. Without an observer the
// report is left to another process.
func TestReportIsRepeatedUntilItIsNoted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arrange func(p *processes)
		events  []int // after each copy, of which only the first one is in process 0
	}{
		"the record cannot note it": {func(p *processes) { p.stores[0].before.set(fails(errDown, "resolve")) }, []int{1, 2, 2}},
		"no observer":               {func(p *processes) { p.engines[0].hooks.Observe = nil }, []int{0, 1, 1}},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(2)
			p.server.setRecord("k", fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 1})
			test.arrange(p)
			for i, want := range test.events {
				_ = refused(t, p.engines[min(i, 1)], attempt("f", 0))
				synctest.Wait()
				if got := p.unknown(); len(got) != want || p.stores[0].count("resolve") != 0 {
					t.Errorf("copy %d: events %+v, want %d; noted %d times", i, got, want, p.stores[0].count("resolve"))
				}
			}
			p.checkIdle(t)
		})
	}
}

// With Rerun, each run after an attempt that died is reported.
func TestRunAfterAttemptThatDiedIsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		p.server.setRecord("k", fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 1})
		r := attempt("f", 0)
		r.Attempt.Rerun = true
		h := hold(t, p.engines[0], r)
		if got := p.unknown(); len(got) != 1 {
			t.Errorf("events %+v of attempt %d", got, h.Number())
		}
		end(t, h, EndCommit)
		if got := p.unknown(); len(got) != 1 {
			t.Errorf("events %+v after the commit", got)
		}
		p.checkIdle(t)
	})
}

// Close waits until the report is noted: another process would repeat it.
func TestCloseWaitsForTheNoteOfAReport(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		p.server.setRecord("k", fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 1})
		p.stores[0].before.set(delays(time.Second, "resolve"))
		_ = refused(t, p.engines[0], attempt("f", 0))
		closes(t, p.engines[0])
		if record := p.server.record("k"); record.reported != "dead:1" {
			t.Error("the report is not noted")
		}
	})
}

func TestInterruptReportsItsCause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], attempt("f", 0))
		cause := errors.New("the handler panicked")
		h.SetOutcomeName("late")
		h.SetCause(cause)
		delaysOnce(p.stores[0], "release", time.Second)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			end(t, h, EndUnknown)
		}()
		synctest.Wait()
		h.SetCause(errors.New("too late"))
		<-ended
		if got := p.unknown(); len(got) != 1 || !errors.Is(got[0].Err, cause) || got[0].Name != "late" {
			t.Errorf("events %+v", got)
		}
		p.checkIdle(t)
	})
}
