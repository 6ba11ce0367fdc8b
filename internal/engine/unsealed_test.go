package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The commit of an answer that was not sealed is not sent until it is. Meanwhile copies in the process get
// the answer.
func TestAnswerThatIsNotSealed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lost   bool // the lease was lost before the commit
		size   int  // of the answer; more than Config.MaxOpenBytes has no room
		closes bool // the engine closes before the answer is sealed
		record rune
	}{
		"it is sealed later":                     {size: 10, record: 'D'},
		"it is sealed later, and lost its lease": {size: 10, lost: true, record: 'D'},
		"it has no room":                         {size: 2000, record: 'R'},
		"the engine closes":                      {size: 10, closes: true, record: 'R'},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, answer := newProcesses(1), make([]byte, test.size)
				var isBack atomic.Bool
				h := hold(t, p.engines[0], attempt("f", 0))
				if test.lost {
					p.server.set("k", "", 0)
					<-h.Context().Done()
				}
				failed := errors.New("no key")
				seal := func(context.Context) ([]byte, error) {
					time.Sleep(time.Second)
					if !isBack.Load() {
						return nil, failed
					}
					return []byte("sealed"), nil
				}
				begun := time.Now()
				if _, err := h.EndUnsealed(t.Context(), answer, seal, failed); !errors.Is(err, failed) || time.Since(begun) > 0 {
					t.Errorf("after %v: %v", time.Since(begun), err)
				}
				time.Sleep(10 * time.Second)
				if sent := p.stores[0].begunCount("commit"); sent > 0 {
					t.Errorf("sent %d times", sent)
				}
				if open, _, _ := p.engines[0].OpenCommits(); (open == 1) != (test.size < 1000) {
					t.Errorf("%d commits are open", open)
				} else if refusal := refused(t, p.engines[0], attempt("f", 0)); open == 1 && string(refusal.Record) != string(answer) {
					t.Errorf("a copy: %v, %q", refusal.Reason, refusal.Record)
				}
				if test.closes {
					if err := p.engines[0].Close(t.Context()); err != nil {
						t.Errorf("Close: %v", err)
					}
				}
				isBack.Store(true)
				time.Sleep(10 * time.Second)
				if got := p.server.record("k"); got.state != test.record || (string(got.answer) == "sealed") != (test.record == 'D') {
					t.Errorf("the record is %c, %q", got.state, got.answer)
				}
				if unknown := len(p.events[0].of(OutcomeUnknown)); (unknown == 2) != (test.record == 'R') { // a copy reports it, or the end of the commit
					t.Errorf("%d unknown outcomes", unknown)
				}
				p.checkIdle(t)
			})
		})
	}
}

// A seal that takes long does not delay Close: its context ends, and the commit with it. Nothing is sent after that.
func TestCloseDoesNotWaitForASeal(t *testing.T) {
	t.Parallel()
	for name, limited := range map[string]bool{"Close with a deadline": true, "Close without one": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, failed := newProcesses(1), errors.New("no key")
				h := hold(t, p.engines[0], attempt("f", 0))
				seal := func(ctx context.Context) ([]byte, error) {
					select {
					case <-ctx.Done():
					case <-time.After(time.Minute):
					}
					if limited { // the result has crossed the end
						return []byte("sealed"), nil
					}
					return nil, ctx.Err()
				}
				if _, err := h.EndUnsealed(t.Context(), []byte("answer"), seal, failed); !errors.Is(err, failed) {
					t.Errorf("EndUnsealed: %v", err)
				}
				time.Sleep(maxOpenPause)
				ctx := t.Context()
				if limited {
					until, cancel := context.WithTimeout(ctx, time.Second)
					defer cancel()
					ctx = until
				}
				begun := time.Now()
				_ = p.engines[0].Close(ctx)
				if took := time.Since(begun); took > commitTimeout {
					t.Errorf("Close took %v", took)
				}
				time.Sleep(2 * time.Minute)
				if sent := p.stores[0].begunCount("commit"); sent > 0 {
					t.Errorf("sent %d times", sent)
				}
				if unknown := len(p.events[0].of(OutcomeUnknown)); unknown != 2 { // of the try before, and of Close
					t.Errorf("%d unknown outcomes", unknown)
				}
				p.checkIdle(t)
			})
		})
	}
}
