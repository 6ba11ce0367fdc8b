package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, s, events := newEngine()
				h := hold(t, e, attempt("f", 0))
				s.set("k", "another", time.Minute)
				s.before.set(func(transition string, _ storetest.AnyRequest) error {
					if n := s.begunCount("commit"); transition == "commit" && n <= len(c.tries) {
						return c.tries[n-1]
					}
					return nil
				})
				end(t, h, Commit)
				synctest.Wait()
				if got := len(events.of(Lost)); got != c.losses || s.count("commit") != 1 {
					t.Errorf("%d losses after %d commits, want %d after one", got, s.count("commit"), c.losses)
				}
			})
		})
	}
}
