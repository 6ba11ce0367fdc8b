package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The first send of NotDone takes effect, and its reply is lost. The second send must not report
// that nothing has changed.
func TestForgetWhoseReplyIsLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		between func(*core.Attempt, context.Context) error // what the next attempt does before the second send
		want    error
	}{
		"no attempt begins":          {nil, nil},
		"another attempt is aborted": {(*core.Attempt).Abort, nil},
		"another attempt runs":       {func(*core.Attempt, context.Context) error { return nil }, core.ErrUnavailable},
		"another attempt is done": {func(a *core.Attempt, ctx context.Context) error {
			return a.Commit(ctx, []byte("answer"))
		}, core.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, proxy, rdb := behindProxy(t)
			locks, direct := newLocker(t, rdb, core.WithCommandTimeout(20*time.Second)), newLocker(t, server.Client(t))
			wantError(t, direct.Resolve(t.Context(), "loads the script", core.NotDone(), anAttempt(t)), core.ErrNotFound)
			seen := interrupted(t, direct, "k")
			sendFirst, _ := proxy.HoldCommand(redistest.Named("EVALSHA"))
			sendFirst() // so that the next rule is that of the second send
			sendSecond, held := proxy.HoldCommand(redistest.Named("EVALSHA"))
			defer sendSecond()
			proxy.DropReply(redistest.Named("EVALSHA"), redistest.CloseConn)
			resolved := start(func() error { return locks.Resolve(t.Context(), "k", core.NotDone(), seen) })
			suite.AwaitClosed(t, "the second send is held", held)
			if test.between != nil {
				next := begin(t, direct, "k")
				defer func() { _ = next.Abort(context.WithoutCancel(t.Context())) }()
				noError(t, test.between(next, t.Context()))
			}
			sendSecond()
			err := suite.Receive(t, "the result", resolved)
			if !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), "may have taken effect") {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
