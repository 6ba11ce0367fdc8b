package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// referred returns a request with a fingerprint and a reference.
func referred(fingerprint, reference string, wait time.Duration) Request {
	r := attempt(fingerprint, wait)
	r.Attempt.Reference = reference
	return r
}

// checkFirst fails the test unless a request is refused for this reason, and the refusal and its event have
// the reference.
func (p *processes) checkFirst(t *testing.T, process int, r Request, reason Reason, want string) {
	t.Helper()
	kind := Refused
	if reason == Done {
		kind = Replayed
	}
	before := len(p.events[process].of(kind))
	if got := refused(t, p.engines[process], r); got.Reason != reason || got.First != want {
		t.Errorf("process %d: refused for %v because of %q, want %v and %q", process, got.Reason, got.First, reason, want)
	}
	if events := p.events[process].of(kind); len(events) != before+1 || events[before].Origin != want {
		t.Errorf("process %d: events %+v, want one more of %q", process, events[before:], want)
	}
}

// A copy learns the reference of the attempt that runs or was done, in each process, whatever reference the
// copy has itself.
func TestCopyLearnsReferenceOfFirst(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ending Ending
		then   Reason
	}{"committed": {EndCommit, Done}, "done": {EndDone, Unreplayable}} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(3)
			h := hold(t, p.engines[0], referred("f", "first", 0))
			for i := range p.engines {
				p.checkFirst(t, i, referred("f", "copy", 0), Busy, "first")
				p.checkFirst(t, i, referred("f", "copy", time.Second), TimedOut, "first")
				p.checkFirst(t, i, referred("g", "other", 0), Mismatch, "first")
			}
			end(t, h, test.ending)
			for i := range p.engines {
				p.checkFirst(t, i, referred("f", "copy", 0), test.then, "first")
				p.checkFirst(t, i, attempt("f", 0), test.then, "first")
				p.checkFirst(t, i, referred("g", "other", 0), Mismatch, "first")
			}
			p.checkIdle(t)
		})
	}
}

// Copies that wait learn it from the end of the attempt, and another request in the queue from its grant.
func TestWaitingCopyLearnsReferenceOfFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], referred("f", "first", 0))
		got := make(chan *Refusal, 2)
		for _, e := range p.engines {
			go func() {
				_, err := e.Acquire(t.Context(), referred("f", "copy", WaitForever))
				refusal, _ := err.(*Refusal) //nolint:errorlint // Acquire promises the type itself
				got <- refusal
			}()
			synctest.Wait()
		}
		end(t, h, EndCommit)
		for range p.engines {
			if refusal := <-got; refusal == nil || refusal.Reason != Done || refusal.First != "first" {
				t.Errorf("%+v", refusal)
			}
		}
		for i, r := range p.events {
			if replayed := r.of(Replayed); len(replayed) != 1 || replayed[0].Origin != "first" {
				t.Errorf("process %d: %+v", i, replayed)
			}
		}
		p.checkIdle(t)
	})
}

// A caller that leaves has asked for the key. The record has the reference of the caller that runs.
func TestRecordHasReferenceOfAttemptThatRuns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(2)
		h := hold(t, p.engines[0], referred("f", "aborted", 0))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = p.engines[1].Acquire(ctx, referred("f", "left", WaitForever)) }()
		synctest.Wait()
		noted := ""
		waiting(t, p.engines[1], referred("f", "runs", WaitForever), func(*Hold) { noted = p.server.record("k").reference })
		cancel()
		synctest.Wait()
		end(t, h, EndAbort)
		time.Sleep(time.Minute)
		synctest.Wait()
		if noted != "runs" {
			t.Errorf("the record has %q", noted)
		}
		p.checkIdle(t)
	})
}

// An attempt that has lost its lease still runs: its copies in this process wait for it.
func TestCopyLearnsReferenceAfterLoss(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], referred("f", "first", 0))
		p.server.set("k", "", 0)
		<-h.Context().Done()
		p.checkFirst(t, 0, attempt("f", 0), Busy, "first")
		var waits error
		go func() { _, waits = p.engines[0].Acquire(t.Context(), referred("f", "copy", WaitForever)) }()
		synctest.Wait()
		end(t, h, EndCommit)
		synctest.Wait()
		if refusal, _ := waits.(*Refusal); refusal == nil || refusal.Reason != Done || refusal.First != "first" { //nolint:errorlint // Acquire promises the type itself
			t.Errorf("the copy that waits: %+v", waits)
		}
		p.checkFirst(t, 0, attempt("f", 0), Done, "first")
		p.checkIdle(t)
	})
}

// The events about an attempt that died have its reference, and so has the one of the attempt that runs again.
func TestUnknownOutcomeHasReferenceOfItsAttempt(t *testing.T) {
	t.Parallel()
	dead := fakeRecord{state: 'R', token: "dead:1", fingerprint: []byte("f"), number: 1, reference: "first"}
	check := func(t *testing.T, p *processes, want string) {
		t.Helper()
		if got := p.unknown(); len(got) != 1 || got[0].Origin != want {
			t.Errorf("%+v, want one of %q", got, want)
		}
	}
	row(t, "a copy is refused", func(t *testing.T) {
		p := newProcesses(1)
		p.server.setRecord("k", dead)
		p.checkFirst(t, 0, referred("f", "copy", 0), Died, "first")
		synctest.Wait()
		check(t, p, "first")
		p.checkIdle(t)
	})
	row(t, "a copy runs", func(t *testing.T) {
		p := newProcesses(1)
		p.server.setRecord("k", dead)
		again := referred("f", "again", 0)
		again.Attempt.Rerun = true
		h := hold(t, p.engines[0], again)
		check(t, p, "first")
		p.checkFirst(t, 0, attempt("f", 0), Busy, "again")
		end(t, h, EndCommit)
		p.checkFirst(t, 0, attempt("f", 0), Done, "again")
		p.checkIdle(t)
	})
	row(t, "the own attempt ends as unknown", func(t *testing.T) {
		p := newProcesses(1)
		end(t, hold(t, p.engines[0], referred("f", "first", 0)), EndUnknown)
		check(t, p, "first")
		p.checkIdle(t)
	})
	row(t, "an operator reads it", func(t *testing.T) {
		p := newProcesses(1)
		p.server.setRecord("k", dead)
		if got, err := p.engines[0].Outcome(t.Context(), "k"); err != nil || got.First != "first" {
			t.Errorf("%+v, %v", got, err)
		}
		p.checkIdle(t)
	})
}

// A copy beside an open commit gets the answer from this process. The events of its end have no context.
func TestOpenCommitHasReference(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ending Ending
		then   Reason
		fails  string
	}{"commit": {EndCommit, Done, "commit"}, "done": {EndDone, Unreplayable, "seal"}} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(1)
			h := hold(t, p.engines[0], referred("f", "first", 0))
			failsFor(p.stores[0], 5*time.Second, test.fails)
			_, _ = h.End(t.Context(), test.ending, answerOf(h))
			p.checkFirst(t, 0, attempt("f", 0), test.then, "first")
			time.Sleep(time.Minute)
			synctest.Wait()
			committed := p.events[0].of(Committed)
			if last := committed[len(committed)-1]; !last.Repeated || last.Origin != "first" {
				t.Errorf("%+v", last)
			}
			if unknown := p.unknown(); len(unknown) != 1 || unknown[0].Origin != "first" {
				t.Errorf("%+v", unknown)
			}
			p.checkIdle(t)
		})
	}
}
