package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Two requests are given up while the store does not reply, and their attempts are aborted: the
// store keeps the last abort only. Then the begin of the first one arrives. No handler has run, so
// the next request runs as soon as the process learns of the begin.
func TestLateBeginOfAbortedAttemptLeavesNoRecord(t *testing.T) {
	t.Parallel()
	for name, learn := range map[string]func(s *fakeStore, token string){
		"its reply arrives":            func(s *fakeStore, token string) { s.lateGrant("k", token) },
		"a waiter elsewhere hints":     func(s *fakeStore, token string) { s.hint("k", token) },
		"the next request finds a key": func(*fakeStore, string) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newProcesses(1)
				s := p.stores[0]
				var begins []storetest.AnyRequest
				s.before.set(func(transition string, r storetest.AnyRequest) error {
					if transition != "begin" {
						return nil
					}
					begins = append(begins, r)
					return &store.Fault{Temporary: true, Unknown: true, Err: errNoCommitReply}
				})
				for range 2 {
					if refusal := refused(t, p.engines[0], attempt("f", 0)); refusal.Reason != Unavailable {
						t.Errorf("a request without a reply: %v", refusal.Reason)
					}
					synctest.Wait() // the abort
				}
				s.before.set(nil)
				if answer, err := s.enqueue(begins[0]); err != nil || !answer.Granted {
					t.Fatalf("the late begin: %+v, %v", answer, err)
				}
				learn(s, begins[0].Token)
				synctest.Wait()
				end(t, hold(t, p.engines[0], attempt("f", 0)), Commit)
				p.checkIdle(t)
			})
		})
	}
}

// A second send of the begin was answered, and the attempt ran. The late reply to the first send
// does not abort it: its outcome stays unknown.
func TestLateGrantOfInterruptedAttemptKeepsRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], attempt("f", 0))
		end(t, h, Interrupt)
		p.stores[0].lateGrant("k", h.Token())
		time.Sleep(time.Minute)
		if refusal := refused(t, p.engines[0], attempt("f", 0)); refusal.Reason != Interrupted {
			t.Errorf("a copy: %v", refusal.Reason)
		}
		p.checkIdle(t)
	})
}
