package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The handler has run, and its answer is about to be sent. The commit is resent until
// the store has applied it, also after the loss of the lease.
func TestLateCommitIsRetried(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fails time.Duration
		want  rune
	}{
		"not sent":              {time.Second, 'D'},
		"not sent for too long": {3 * time.Second, 'R'},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				p.engines[0].open.maxCount = 0
				h := hold(t, p.engines[0], attempt("f", 0))
				p.server.set("k", "", 0)
				<-h.Context().Done()
				failsFor(p.stores[0], test.fails, "commit")
				begun := time.Now()
				loss, err := h.End(context.Background(), EndCommit, answerOf(h))
				if loss != NotLost || (err != nil) != (test.want == 'R') || time.Since(begun) > commitTimeout+maxPause {
					t.Errorf("loss %v, error %v after %v", loss, err, time.Since(begun))
				}
				if state := p.server.record("k").state; state != test.want {
					t.Errorf("the record is %c, want %c", state, test.want)
				}
				p.checkIdle(t)
			})
		})
	}
}

// Another attempt has begun in another process, so a late commit is refused. The
// callers that wait in this process wait on, for the answer of the other attempt.
func TestRefusedLateAnswerIsNotShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(1), &callers{}
		h := hold(t, p.engines[0], attempt("f", 0))
		other := fakeRecord{state: 'R', token: "other:1", fingerprint: []byte("f"), number: 2}
		p.server.set("k", other.token, time.Hour)
		p.server.setRecord("k", other)
		<-h.Context().Done()
		c.join(t, p.engines[0], 3, attempt("f", WaitForever))
		if loss, err := h.End(context.Background(), EndCommit, answerOf(h)); loss != Taken || err != nil {
			t.Errorf("loss %v, error %v", loss, err)
		}
		c.check(t, 0, 0, "")
		other.state, other.answer = 'D', []byte("answer of other:1")
		p.server.setRecord("k", other)
		p.server.set("k", "", 0)
		time.Sleep(20 * time.Second)
		c.check(t, 0, 3, "other:1")
		p.checkIdle(t)
	})
}

// A late abort has no answer. The callers that wait for the key wait on, and one of
// them runs.
func TestLateAbortRefusesNoCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, c := newProcesses(1), &callers{ending: EndCommit}
		h := hold(t, p.engines[0], attempt("f", 0))
		p.server.set("k", "foreign", time.Hour)
		<-h.Context().Done()
		p.server.setRecord("k", fakeRecord{}) // otherwise the store would refuse the callers
		c.join(t, p.engines[0], 3, attempt("f", WaitForever))
		p.server.setRecord("k", fakeRecord{state: 'R', token: h.Token(), fingerprint: []byte("f")})
		end(t, h, EndAbort)
		c.check(t, 0, 0, "")
		p.server.set("k", "", 0)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if len(c.ran) != 1 || c.reasons[Done] != 2 {
			t.Errorf("ran %v, others %v; want one that ran, and two with its answer", c.ran, c.reasons)
		}
		p.checkIdle(t)
	})
}

// Redis has lost all data, and is back before the commit of an attempt that has lost its lease is
// resent. No copy runs meanwhile.
func TestNoAttemptBeginsDuringLateCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, waiting := newProcesses(1), &callers{}
		h := hold(t, p.engines[0], attempt("f", 0))
		p.server.set("k", "foreign", time.Hour)
		<-h.Context().Done()
		p.server.setRecord("k", fakeRecord{}) // otherwise the store would refuse the callers
		waiting.join(t, p.engines[0], 2, attempt("f", WaitForever))
		p.server.set("k", "", 0)
		failsFor(p.stores[0], time.Second, "commit")
		ended := make(chan error)
		go func() {
			_, err := h.End(context.Background(), EndCommit, answerOf(h))
			ended <- err
		}()
		synctest.Wait()
		if refusal := refused(t, p.engines[0], attempt("f", 0)); refusal.Reason != Unavailable {
			t.Errorf("a new copy: %v", refusal.Reason)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		waiting.check(t, 0, 2, h.Token())
		if refusal := refused(t, p.engines[0], attempt("f", 0)); refusal.Reason != Done {
			t.Errorf("a copy after the commit: %v", refusal.Reason)
		}
		p.checkIdle(t)
	})
}

// The begin of a copy is under way when the handler of a lost lease ends, or the abort of the copy, and
// the store has lost the record. Either arrives before the commit, and the attempt of the copy does not
// run. So the answer is stored.
func TestLateCommitIsStoredAfterOwnAbortedAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wait     time.Duration // of the copy
		ends     time.Duration // when the handler ends, from the begin on
		noReply  bool          // to the begin
		underWay string
		want     Reason // of the copy
	}{
		"the begin":                            {time.Minute, 50 * time.Millisecond, false, "begin", Done},
		"the abort of a copy that has left":    {50 * time.Millisecond, 150 * time.Millisecond, false, "abort", Unavailable},
		"the abort of a begin without a reply": {0, 150 * time.Millisecond, true, "abort", Unavailable},
	} {
		row(t, name, func(t *testing.T) {
			p := newProcesses(1)
			h := hold(t, p.engines[0], attempt("f", 0))
			p.server.set("k", "", 0)
			<-h.Context().Done()
			p.server.setRecord("k", fakeRecord{})
			p.stores[0].before.set(delays(100*time.Millisecond, "begin", "abort"))
			if test.noReply {
				p.stores[0].after.set(fails(errNoCommitReply, "begin"))
			}
			copies := attempt("f", test.wait)
			copies.Attempt.Rerun = true
			refusals := make(chan *Refusal)
			go func() { refusals <- refused(t, p.engines[0], copies) }()
			time.Sleep(test.ends)
			if n := p.stores[0].begunCount(test.underWay) - p.stores[0].count(test.underWay); n != 1 {
				t.Errorf("under way: %d %ss", n, test.underWay)
			}
			end(t, h, EndCommit)
			if refusal := <-refusals; refusal.Reason != test.want {
				t.Errorf("the copy: %v", refusal.Reason)
			}
			if got := p.server.record("k"); got.state != 'D' || p.stores[0].count("abort") != 1 {
				t.Errorf("the record is %c, after %v", got.state, p.stores[0].transitions())
			}
			p.checkIdle(t)
		})
	}
}
