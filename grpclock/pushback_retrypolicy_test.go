package grpclock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// eager is a client that resends a refused call up to five times, almost at once.
var eager = grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5,
	"initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["ABORTED", "INVALID_ARGUMENT"]}}]}`)

// A retry policy of gRPC waits as long as the refusal says, and ends where a retry is useless.
func TestRetryPolicyObeysRefusals(t *testing.T) {
	t.Parallel()
	const hint = 300 * time.Millisecond
	forEachCall(t, func(t *testing.T, key grpclock.Key, bank func(func(context.Context) error) *bank, call func(context.Context, pb.BankClient) error) {
		for name, test := range map[string]struct {
			key     grpclock.Key
			code    codes.Code
			pause   time.Duration
			refused int32
		}{
			"a retry helps":      {key, codes.OK, hint, 1},
			"a retry is useless": {core.Join(key, failing(core.ErrNoKey)), codes.InvalidArgument, 0, 1},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var refused atomic.Int32
				free := func() {}
				locks, rdb := adaptertest.Locker(t, core.WithRetryAfter(hint), core.WithObserver(func(e core.Event) {
					if e.Kind == core.Refused {
						refused.Add(1)
						free()
					}
				}))
				free = func() { adaptertest.Free(t, rdb) }
				adaptertest.Hold(t, rdb)
				addr := listen(t, bank(func(context.Context) error { return nil }), grpclock.ServerOptions(locks, test.key)...)
				client := pb.NewBankClient(dial(t, addr, plaintext, eager))
				before := time.Now()
				wantCode(t, call(within(t), client), test.code)
				if got := refused.Load(); got != test.refused || time.Since(before) < test.pause {
					t.Errorf("%d refusals in %v", got, time.Since(before))
				}
			})
		}
	})
}
