package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The reply with the holder costs more, and only a caller that may not wait needs it.
func TestOnlyNowaitCallerAsksForTheHolder(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]bool{0: true, WaitForever: false} {
		synctest.Test(t, func(t *testing.T) {
			e, s, _ := newEngine()
			s.before.set(func(transition string, r storetest.AnyRequest) error {
				if transition == "take" && r.WithHolder != want {
					t.Errorf("wait %v: a take with the holder: %v", wait, r.WithHolder)
				}
				return nil
			})
			release(t, hold(t, e, request(wait)))
		})
	}
}

// A caller that may not wait joins the take of a waiter, which has not asked for the holder,
// and the waiter leaves. The key has a dead token of this process, which is no contention.
func TestNowaitCallerIsNotRefusedByReplyWithoutHolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, _ := newEngine()
		s.set("k", deadToken(t, e), time.Hour)
		delaysOnce(s, "take", storeDelay)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = e.Acquire(ctx, request(WaitForever)) }()
		synctest.Wait()
		got := acquiring(t, e, request(0))
		cancel()
		if err := <-got; err != nil {
			t.Errorf("refused: %v", err)
		}
	})
}
