package grpclock_test

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// An interceptor around the lock can unwrap the cause of a refusal.
func TestRefusalUnwraps(t *testing.T) {
	t.Parallel()
	interceptor := grpclock.UnaryServerInterceptor(adaptertest.UnusedLocker(t), grpclock.Metadata("x-account"))
	_, err := interceptor(t.Context(), transferOf(theKey), &grpc.UnaryServerInfo{}, nil)
	if !errors.Is(err, core.ErrNoKey) || status.Code(err) != codes.InvalidArgument {
		t.Errorf("%v", err)
	}
	if err.Error() != "rpc error: code = InvalidArgument desc = The request lacks the metadata \"x-account\", by which it is locked." {
		t.Errorf("text %q", err)
	}
}

func TestStatusOf(t *testing.T) {
	t.Parallel()
	own := status.New(codes.NotFound, "mine")
	for name, test := range map[string]struct {
		err    error
		code   codes.Code
		reason string
	}{
		"a refusal":        {&core.Error{Kind: core.ErrQueueFull}, codes.ResourceExhausted, "QUEUE_FULL"},
		"overloaded":       {core.ErrOverloaded, codes.ResourceExhausted, "OVERLOADED"},
		"mismatch":         {core.ErrMismatch, codes.FailedPrecondition, "MISMATCH"},
		"interrupted":      {core.ErrOutcomeUnknown, codes.FailedPrecondition, "OUTCOME_UNKNOWN"},
		"unreplayable":     {core.ErrUnreplayable, codes.AlreadyExists, "COMPLETED_UNREPLAYABLE"},
		"a status":         {own.Err(), codes.NotFound, ""},
		"a wrapped status": {fmt.Errorf("x: %w", own.Err()), codes.NotFound, ""},
		// A cause with a status does not change what happened.
		"a status as cause": {&core.Error{Kind: core.ErrUnavailable, Cause: own.Err()}, codes.Unavailable, "UNAVAILABLE"},
		"unknown":           {errors.New("x"), codes.Internal, "INTERNAL"},
		"OK":                {okError{}, codes.Internal, "INTERNAL"},
		"lost":              {core.ErrLost, codes.Unknown, "LEASE_LOST"},
		"nil":               {nil, codes.Internal, "INTERNAL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := grpclock.StatusOf(test.err)
			if got.Code() != test.code || reasonOf(got.Err()) != test.reason {
				t.Errorf("%v", got)
			}
		})
	}
}

// The status names the part of the call that the client has to mend, without its value.
func TestStatusNamesThePartOfTheCall(t *testing.T) {
	t.Parallel()
	const part = `the metadata "x-account"`
	for name, test := range map[string]struct {
		values  []string
		message string
	}{
		"missing":     {nil, "The request lacks " + part + ", by which it is locked."},
		"given twice": {[]string{"secret", "secret"}, "A part of the request, by which it is locked, is malformed, too long or given twice: " + part + "."},
	} {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{"x-account": test.values})
		_, err := grpclock.Metadata("x-account").Read(grpclock.NewCall(ctx, pb.Bank_Transfer_FullMethodName, nil))
		got := grpclock.StatusOf(err)
		info, ok := got.Details()[0].(*errdetails.ErrorInfo)
		if got.Message() != test.message || !ok || info.GetMetadata()["part"] != part {
			t.Errorf("%s: %v, %v", name, got, info)
		}
	}
}
