package readiness

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Redis loses the key of the first probe, and does not reply to the second one until ctx ends. The
// caller gets the finding of the first probe, which is more useful than the error of ctx.
func TestFindingStaysIfTheContextEndsTheSecondProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var sets atomic.Int64
		rdb := storetest.Embedded(t, func(client *server.Peer, command string, _ ...string) (answered bool) {
			if command == "SET" {
				switch sets.Add(1) {
				case 2: // another token gets the key, too
					client.WriteOK()
					return true
				case 3: // the second probe
					<-ctx.Done()
				}
			}
			return false
		})
		check := NewCheck(rdb, "reqlock:", time.Minute, command.Replicas{}, new(Passed))
		defer check.Close()
		if _, err := check.Run(ctx); !errors.Is(err, errNotKept) || ctx.Err() == nil {
			t.Errorf("got %v, with the context's error %v", err, ctx.Err())
		}
	})
}
