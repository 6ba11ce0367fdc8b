package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Two attempts are aborted: the store keeps the last abort only. Then the begin of the first one arrives,
// or a second send of it. So the next request runs as soon as the process learns of the begin.
func TestLateBeginOfAbortedAttemptLeavesNoRecord(t *testing.T) {
	t.Parallel()
	abort := map[string]func(t *testing.T, p *processes){
		"given up without a reply": func(t *testing.T, p *processes) {
			p.stores[0].before.set(fails(errNoCommitReply, "begin"))
			refuses(t, p.engines[0], attempt("f", 0), Unavailable)
			synctest.Wait() // the abort
		},
		"aborted by the handler": func(t *testing.T, p *processes) {
			end(t, hold(t, p.engines[0], attempt("f", 0)), EndAbort)
		},
		"aborted after the loss of the lease": func(t *testing.T, p *processes) {
			h := hold(t, p.engines[0], attempt("f", 0))
			p.server.set("k", "", 0)
			<-h.Context().Done()
			end(t, h, EndAbort)
		},
	}
	learn := map[string]func(s *fakeStore, token string){
		"its reply arrives":            func(s *fakeStore, token string) { s.lateGrant("k", token) },
		"a waiter elsewhere hints":     func(s *fakeStore, token string) { s.hint("k", token) },
		"the next request finds a key": func(*fakeStore, string) {},
	}
	for aborted, abort := range abort {
		for learns, learn := range learn {
			row(t, aborted+", "+learns, func(t *testing.T) {
				p := newProcesses(1)
				s := p.stores[0]
				abort(t, p)
				abort(t, p)
				s.before.set(nil)
				r := storetest.OfEnqueue(store.EnqueueRequest{Attempt: attempt("f", 0).Attempt})
				r.Key, r.Token, r.TTL = "k", "p0:1", 10*time.Second
				if answer, err := s.enqueue(r); err != nil || !answer.Granted {
					t.Fatalf("the late begin: %+v, %v", answer, err)
				}
				learn(s, r.Token)
				synctest.Wait()
				end(t, hold(t, p.engines[0], attempt("f", 0)), EndCommit)
				p.checkIdle(t)
			})
		}
	}
}

// A second send of the begin was answered, and the attempt ran. The late reply to the first send
// does not abort it: its outcome stays unknown.
func TestLateGrantOfInterruptedAttemptKeepsRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses(1)
		h := hold(t, p.engines[0], attempt("f", 0))
		end(t, h, EndUnknown)
		p.stores[0].lateGrant("k", h.Token())
		time.Sleep(time.Minute)
		if refusal := refused(t, p.engines[0], attempt("f", 0)); refusal.Reason != Died {
			t.Errorf("a copy: %v", refusal.Reason)
		}
		p.checkIdle(t)
	})
}
