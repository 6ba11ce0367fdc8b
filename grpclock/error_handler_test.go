package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// Whatever an error handler leaves undone is done.
func TestErrorHandler(t *testing.T) {
	t.Parallel()
	const noAccount = `The request lacks the metadata "x-account", by which it is locked.`
	for name, test := range map[string]struct {
		handle  func(*grpclock.Call, error) error
		code    codes.Code
		message string
	}{
		"its own": {func(c *grpclock.Call, err error) error {
			refusal, _ := core.RefusalOf(err)
			return status.Error(codes.Unauthenticated, refusal.Code+" "+c.FullMethod())
		}, codes.Unauthenticated, "no_key " + pb.Bank_Transfer_FullMethodName},
		"default":   {func(_ *grpclock.Call, err error) error { return grpclock.StatusOf(err).Err() }, codes.InvalidArgument, noAccount},
		"nil":       {func(*grpclock.Call, error) error { return nil }, codes.InvalidArgument, noAccount},
		"OK":        {func(*grpclock.Call, error) error { return okError{} }, codes.InvalidArgument, noAccount},
		"the error": {func(_ *grpclock.Call, err error) error { return err }, codes.InvalidArgument, noAccount},
		"no status": {func(*grpclock.Call, error) error { return errors.New(theKey) }, codes.InvalidArgument, noAccount},
		"wrapped": {func(*grpclock.Call, error) error {
			return fmt.Errorf("%s: %w", theKey, status.Error(codes.NotFound, "mine"))
		}, codes.NotFound, "mine"},
		"status around the error": {func(_ *grpclock.Call, err error) error {
			return statusAround{err}
		}, codes.NotFound, "mine"},
		"status beside the error": {func(_ *grpclock.Call, err error) error {
			return fmt.Errorf("%w: %w", status.Error(codes.NotFound, "mine"), err)
		}, codes.NotFound, "mine"},
		"status joined behind the error": {func(_ *grpclock.Call, err error) error {
			return errors.Join(err, status.Error(codes.NotFound, "mine"))
		}, codes.NotFound, "mine"},
		"the error, wrapped": {func(_ *grpclock.Call, err error) error {
			return fmt.Errorf("%s: %w", theKey, err)
		}, codes.InvalidArgument, noAccount},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := serve(t, &bank{transfer: func(context.Context, *pb.TransferRequest) error {
				t.Error("the handler has run")
				return nil
			}}, unary(adaptertest.UnusedLocker(t), grpclock.Metadata("x-account"), grpclock.WithErrorHandler(test.handle)))
			_, err := client.Transfer(within(t), transferOf(theKey))
			if got := status.Convert(err); got.Code() != test.code || got.Message() != test.message {
				t.Errorf("%v", err)
			}
		})
	}
}

// The status of a cause, such as a circuit breaker's before Redis, or of the key's
// own error, is not one that an error handler has chosen.
func TestErrorHandlerChoosesItsStatus(t *testing.T) {
	t.Parallel()
	own, behind := status.Error(codes.NotFound, "mine"), status.Error(codes.DataLoss, theKey)
	circuit := &breaker{err: behind}
	rdb := redis.NewClient(&redis.Options{Addr: redistest.Reuse(t).Addr(), Limiter: circuit})
	t.Cleanup(func() { _ = rdb.Close() })
	locks := core.Must(core.New(rdb))
	adaptertest.CloseAfter(t, locks)
	circuit.open.Store(true)
	t.Cleanup(func() { circuit.open.Store(false) })
	wrap := func(err error) error { return fmt.Errorf("x: %w", err) }
	for name, test := range map[string]struct {
		key    grpclock.Key
		handle func(error) error
		code   codes.Code
	}{
		"the error": {literal, func(err error) error { return err }, codes.Unavailable},
		"wrapped":   {literal, wrap, codes.Unavailable},
		"taken out": {literal, func(err error) error { return wrap(detailOf(err)) }, codes.Unavailable},
		"another lock's": {failing(core.ErrInvalidKey), func(error) error {
			_, err := locks.TryLock(t.Context(), "another")
			return wrap(err)
		}, codes.InvalidArgument},
		"joined":    {literal, func(err error) error { return errors.Join(err, own) }, codes.NotFound},
		"the cause": {literal, func(err error) error { return wrap(detailOf(err).Cause) }, codes.DataLoss},
		"the key's": {failing(behind), wrap, codes.DataLoss},
		"beside the key's": {failing(behind), func(err error) error {
			return fmt.Errorf("%w: %w", err, own)
		}, codes.NotFound},
		"not to be compared": {failing(uncomparable{core.ErrNoKey}), func(err error) error { return err }, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			interceptor := grpclock.UnaryServerInterceptor(locks, test.key,
				grpclock.WithErrorHandler(func(_ *grpclock.Call, err error) error { return test.handle(err) }))
			_, err := interceptor(t.Context(), transferOf(theKey), &grpc.UnaryServerInfo{}, nil)
			wantCode(t, err, test.code)
		})
	}
}

// A breaker is a circuit breaker before Redis.
type breaker struct {
	open atomic.Bool // nothing passes
	err  error
}

func (b *breaker) ReportResult(error) {}

func (b *breaker) Allow() error {
	if b.open.Load() {
		return b.err
	}
	return nil
}

// detailOf returns the detail in an error.
func detailOf(err error) *core.Error {
	var detail *core.Error
	errors.As(err, &detail)
	return detail
}

// uncomparable is an error that == panics on.
type uncomparable []error

func (uncomparable) Error() string     { return theKey }
func (e uncomparable) Unwrap() []error { return e }

// statusAround is an error with a status of its own around another error.
type statusAround struct{ error }

func (e statusAround) Unwrap() error            { return e.error }
func (statusAround) GRPCStatus() *status.Status { return status.New(codes.NotFound, "mine") }

// The error handler is called for a stream that does not get its lock. It is not
// called for a handler that sends or returns before the first message.
func TestErrorHandlerInStream(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		busy   bool
		handle func(batchServer) error
		asked  error
		code   codes.Code
	}{
		"busy": {true, func(s batchServer) error {
			_, err := s.Recv()
			return err
		}, core.ErrBusy, codes.NotFound},
		"sends too early":     {false, func(s batchServer) error { return s.Send(&pb.TransferReply{}) }, nil, codes.Internal},
		"returns too early":   {false, func(batchServer) error { return nil }, nil, codes.Internal},
		"an error of its own": {false, func(batchServer) error { return status.Error(codes.DataLoss, "") }, nil, codes.DataLoss},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, rdb := adaptertest.Locker(t)
			if test.busy {
				adaptertest.Hold(t, rdb)
			}
			var asked error
			client := serve(t, &bank{batch: test.handle}, streams(locks, accountOf,
				grpclock.WithErrorHandler(func(c *grpclock.Call, err error) error {
					asked = err
					if m, ok := c.Message().(*pb.TransferRequest); !ok || m.GetAccount().GetId() != theKey {
						t.Errorf("asked about the message %v", m)
					}
					return status.Error(codes.NotFound, "mine")
				})))
			wantCode(t, batchCall(within(t), client), test.code)
			if !errors.Is(asked, test.asked) {
				t.Errorf("asked about %v", asked)
			}
		})
	}
}
