package grpclock_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A handler that returns the loss of its lock ran, so its client must not try again. A status of
// the handler's own stays, and so does the refusal of a lock that it took itself.
func TestHandlerThatLosesItsLock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err    error
		code   codes.Code
		reason string
	}{
		"lost":          {core.ErrLost, codes.Unknown, "LEASE_LOST"},
		"held too long": {fmt.Errorf("transfer: %w", core.ErrMaxHold), codes.Unknown, "LEASE_LOST"},
		"closed":        {core.ErrClosed, codes.Unknown, "LEASE_LOST"},
		"its own":       {fmt.Errorf("%w: %w", status.Error(codes.Aborted, "late"), core.ErrLost), codes.Aborted, ""},
		"a refusal":     {&core.Error{Kind: core.ErrClosed}, codes.Unknown, ""},
	} {
		for kind, opt := range map[string]func(*core.Locker, grpclock.KeyFunc, ...grpclock.Option) grpc.ServerOption{"a lock": unary, "an attempt": idempotent} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				locks, _ := adaptertest.Locker(t)
				client := serve(t, &bank{transfer: func(context.Context, *pb.TransferRequest) error { return test.err }}, opt(locks, literal))
				_, err := client.Transfer(within(t), transferOf("a"))
				if status.Code(err) != test.code || reasonOf(err) != test.reason {
					t.Errorf("%v with the reason %q", err, reasonOf(err))
				}
			})
		}
	}
}
