package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// The lock is lost when its commit is sent. A try before it was refused. The holder
// is told of the loss, unless that try may have released the key.
func TestCommitAfterRefusedTryReportsLoss(t *testing.T) {
	for name, c := range map[string]struct {
		unknown bool
		losses  int
	}{
		"the try was not sent":  {false, 1},
		"the try may have been": {true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, s, events := newEngine()
				h := hold(t, e, attempt("f", 0))
				s.set("k", "another", time.Minute)
				s.before.set(func(transition string, _ store.Request) error {
					if transition == "commit" && s.tried("commit") == 1 {
						return &store.Fault{Unknown: c.unknown, Passing: true, Err: errors.New("refused")}
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
