package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestCommitIsRetried(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		fails  time.Duration
		lost   bool // the reply is lost, and not the commit
		goesOn bool
		want   rune // when the caller has its result
		later  rune
	}{
		{"not sent", time.Second, false, true, 'D', 'D'},
		{"not answered", time.Second, true, true, 'D', 'D'},
		{"not sent for too long", 3 * time.Second, false, true, 'R', 'D'},
		{"not answered for too long", 3 * time.Second, true, true, 'D', 'D'},
		{"not sent for too long, and it does not go on", 3 * time.Second, false, false, 'R', 'R'},
		{"not answered for too long, and it does not go on", 3 * time.Second, true, false, 'D', 'D'},
	} {
		row(t, test.name, func(t *testing.T) {
			p := newProcesses(1)
			if !test.goesOn {
				p.engines[0].open.maxCount = 0
			}
			h := hold(t, p.engines[0], attempt("f", 0))
			back := time.Now().Add(test.fails)
			fail := failsUntil(back, errNoCommitReply)
			if test.lost {
				p.stores[0].after.set(fail)
			} else {
				p.stores[0].before.set(fail)
			}
			begun := time.Now()
			loss, err := h.End(context.Background(), EndCommit, answerOf(h))
			took := time.Since(begun)
			failed := test.fails > commitTimeout
			if loss != NotLost || (err != nil) != failed || took > commitTimeout+maxPause {
				t.Errorf("loss %v, error %v after %v", loss, err, took)
			}
			if state := p.server.record("k").state; state != test.want {
				t.Errorf("the record is %c, want %c", state, test.want)
			}
			time.Sleep(10 * time.Second)
			if aborts := p.stores[0].begunCount("abort"); aborts != 0 {
				t.Errorf("what may be done was aborted %d times", aborts)
			}
			if lost := p.events[0].of(Lost); len(lost) != 0 {
				t.Errorf("lost %+v", lost)
			}
			committed, late := p.events[0].of(Committed), failed && test.goesOn
			if (len(committed) == 2) != late || (committed[0].Err != nil) != failed || committed[0].GoesOn != late {
				t.Errorf("committed %+v", committed)
			}
			if last := committed[len(committed)-1]; late && (last.Err != nil || last.GoesOn || !last.Repeated || last.Held < test.fails) {
				t.Errorf("late: %+v", last)
			}
			want := map[rune]Reason{'D': Done, 'R': Died}[test.later]
			if refusal := refused(t, p.engines[0], attempt("f", 0)); refusal.Reason != want {
				t.Errorf("the next one: %v, want %v", refusal.Reason, want)
			}
			p.checkIdle(t)
		})
	}
}

// The caller of a commit that the store refuses for good gets that at once.
func TestCommitIsNotRetriedAfterPermanentFault(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		p.engines[0].open.maxCount = 0
		h := hold(t, p.engines[0], attempt("f", 0))
		p.stores[0].before.set(fails(&store.Fault{Err: errors.New("denied")}, "commit"))
		begun := time.Now()
		if _, err := h.End(context.Background(), EndCommit, nil); err == nil || time.Since(begun) > 0 {
			t.Errorf("error %v after %v", err, time.Since(begun))
		}
		synctest.Wait()
		p.stores[0].checkTransitions(t, "begin", "release")
		p.checkIdle(t)
	})
}

// The first resend of a commit comes after the shortest pause.
func TestFirstResendOfCommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], attempt("f", 0))
		p.stores[0].before.set(func(string, storetest.AnyRequest) error {
			if p.stores[0].begunCount("commit") == 1 {
				return errNoCommitReply
			}
			return nil
		})
		begun := time.Now()
		end(t, h, EndCommit)
		if took := time.Since(begun); took > minPause {
			t.Errorf("committed after %v", took)
		}
		p.checkIdle(t)
	})
}

func TestCommitAfterLoss(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		rerun bool // another attempt has begun
		want  Loss
	}{
		{"alone", false, NotLost},
		{"after another has begun", true, Taken},
	} {
		row(t, test.name, func(t *testing.T) {
			p := newProcesses(2)
			h := hold(t, p.engines[0], attempt("f", 0))
			p.server.set("k", "", 0)
			<-h.Context().Done()
			last := h
			if test.rerun {
				r := attempt("f", 0)
				r.Attempt.Rerun = true
				last = hold(t, p.engines[1], r)
			}
			if loss, err := h.End(context.Background(), EndCommit, answerOf(h)); loss != test.want || err != nil {
				t.Errorf("loss %v, error %v", loss, err)
			}
			committed := p.events[0].of(Committed)
			if len(committed) != 1 || committed[0].Loss != test.want {
				t.Errorf("committed %+v", committed)
			}
			if test.rerun {
				end(t, last, EndCommit)
			}
			for _, e := range p.engines {
				if refusal := refused(t, e, attempt("f", 0)); string(refusal.Record) != string(answerOf(last)) {
					t.Errorf("%v, %q", refusal.Reason, refusal.Record)
				}
			}
			p.checkIdle(t)
		})
	}
}

// The callers that wait for the key of an attempt get its answer, even if the attempt
// has lost its lease. They need no command for it.
func TestLateCommitAnswersWaiters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, c := newProcesses(1), &callers{}
		h := hold(t, p.engines[0], attempt("f", 0))
		p.server.set("k", "foreign", time.Hour)
		<-h.Context().Done()
		p.server.setRecord("k", fakeRecord{}) // otherwise the store would refuse the callers
		c.join(t, p.engines[0], 5, attempt("f", WaitForever))
		p.server.setRecord("k", fakeRecord{state: 'R', token: h.Token(), fingerprint: []byte("f")})
		begun := p.stores[0].count("begin")
		end(t, h, EndCommit)
		c.check(t, 0, 5, h.Token())
		if got := p.stores[0].count("begin"); got != begun {
			t.Errorf("asked %d times", got-begun)
		}
		p.server.set("k", "", 0)
		p.checkIdle(t)
	})
}

func TestCommitRestoresLostRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], attempt("f", 0))
		p.server.setRecord("k", fakeRecord{})
		end(t, h, EndCommit)
		synctest.Wait()
		if restored := p.events[0].of(Restored); len(restored) != 1 {
			t.Errorf("events %+v", p.events[0].all())
		}
		if refusal := refused(t, p.engines[0], attempt("f", 0)); refusal.Reason != Done {
			t.Errorf("%v", refusal.Reason)
		}
		p.checkIdle(t)
	})
}

// The lock is lost when its commit is sent. An earlier send was refused. The holder
// learns of the loss, unless that send may have released the key.
func TestCommitAfterRefusedSendReportsLoss(t *testing.T) {
	t.Parallel()
	refused := &store.Fault{Temporary: true, Err: errors.New("refused")}
	for name, c := range map[string]struct {
		tries  []error // before the send that is answered
		losses int
	}{
		"the first send failed before Redis":    {[]error{refused}, 1},
		"the first send may have been applied":  {[]error{errNoCommitReply}, 0},
		"only the first may have been applied":  {[]error{errNoCommitReply, refused}, 0},
		"only the second may have been applied": {[]error{refused, errNoCommitReply}, 0},
	} {
		row(t, name, func(t *testing.T) {
			e, s, events := newEngine()
			h := hold(t, e, attempt("f", 0))
			s.set("k", "another", time.Minute)
			s.before.set(func(transition string, _ storetest.AnyRequest) error {
				if n := s.begunCount("commit"); transition == "commit" && n <= len(c.tries) {
					return c.tries[n-1]
				}
				return nil
			})
			end(t, h, EndCommit)
			synctest.Wait()
			if got := len(events.of(Lost)); got != c.losses || s.count("commit") != 1 {
				t.Errorf("%d losses after %d commits, want %d after one", got, s.count("commit"), c.losses)
			}
		})
	}
}
