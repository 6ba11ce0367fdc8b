package connectlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A refusal has its code, details and metadata on each protocol, for a unary call and for each kind of
// stream, whether its lock is taken when it opens or with the first message.
func TestRefusalOnEachProtocol(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t, core.WithRetryAfter(1500*time.Millisecond))
	adaptertest.Hold(t, rdb)
	b := &bank{
		deposit: func(_ context.Context, s depositStream) (*connect.Response[pb.BalanceReply], error) {
			for s.Receive() {
				t.Error("received a message without the lock")
			}
			return connect.NewResponse(&pb.BalanceReply{}), s.Err()
		},
		batch: func(_ context.Context, s batchStream) error {
			_, err := s.Receive()
			return err
		},
	}
	account := &pb.Account{Id: theKey}
	calls := map[string]func(ctx context.Context, c client) error{
		"unary": func(ctx context.Context, c client) error {
			_, err := c.transfer.CallUnary(ctx, transferOf(theKey))
			return err
		},
		"server stream": func(ctx context.Context, c client) error {
			s, err := c.watch.CallServerStream(ctx, connect.NewRequest(&pb.BalanceRequest{Account: account}))
			if err != nil {
				return err
			}
			for s.Receive() {
				t.Error("received a message")
			}
			return errors.Join(s.Err(), s.Close())
		},
		"client stream": func(ctx context.Context, c client) error {
			s := c.deposit.CallClientStream(ctx)
			_ = s.Send(&pb.DepositRequest{Account: account}) // CloseAndReceive says why it fails
			_, err := s.CloseAndReceive()
			return err
		},
		"bidi stream": func(ctx context.Context, c client) error {
			_, err := batchOf(ctx, c, theKey)
			return err
		},
	}
	for taken, key := range map[string]connectlock.Key{"when it opens": literal, "with the message": accountOf} {
		clients := listen(t, b.handler(locked(connectlock.Interceptor(locks, key))))
		for protocol, option := range protocols {
			for kind, call := range calls {
				t.Run(protocol+", "+kind+", "+taken, func(t *testing.T) {
					t.Parallel()
					err := call(within(t), clients(option))
					var got *connect.Error
					if !errors.As(err, &got) {
						t.Fatalf("%v", err)
					}
					info, retry := infoOf(got)
					if got.Code() != connect.CodeAborted || info.GetReason() != "BUSY" || info.GetDomain() != "reqlock" ||
						retry.GetRetryDelay().AsDuration() != 1500*time.Millisecond ||
						got.Message() != "Another request holds the lock that this one needs." {
						t.Errorf("%v with %v, %v", got, info, retry)
					}
					if meta := got.Meta(); meta.Get("Retry-After") != "2" || meta.Get("Grpc-Retry-Pushback-Ms") != "1500" || meta.Get("Cache-Control") != "" {
						t.Errorf("metadata %v", meta)
					}
					if all := fmt.Sprint(got, got.Meta()); strings.Contains(all, theKey) || strings.Contains(all, adaptertest.ForeignToken) {
						t.Errorf("the answer contains the key or the token: %s", all)
					}
				})
			}
		}
	}
}

// An error that a program uses for several calls.
var notFound = connect.NewError(connect.CodeNotFound, errors.New("mine"))

func TestErrorOf(t *testing.T) {
	t.Parallel()
	mine := connect.NewError(connect.CodeNotFound, errors.New("mine"))
	for name, test := range map[string]struct {
		err      error
		code     connect.Code
		reason   string
		pushback string
	}{
		"a refusal":       {&core.Error{Kind: core.ErrQueueFull, RetryAfter: time.Second}, connect.CodeResourceExhausted, "QUEUE_FULL", "1000"},
		"a mismatch":      {core.ErrMismatch, connect.CodeFailedPrecondition, "MISMATCH", "-1"},
		"a nanosecond":    {&core.Error{Kind: core.ErrBusy, RetryAfter: 1}, connect.CodeAborted, "BUSY", "1"},
		"lost":            {core.ErrLost, connect.CodeUnknown, "LEASE_LOST", "-1"},
		"an error":        {mine, connect.CodeNotFound, "", ""},
		"a wrapped error": {fmt.Errorf("x: %w", mine), connect.CodeNotFound, "", ""},
		// A cause with a code does not change what happened.
		"an error as cause": {&core.Error{Kind: core.ErrUnavailable, Cause: mine}, connect.CodeUnavailable, "UNAVAILABLE", "1000"},
		"unknown":           {errors.New("x"), connect.CodeInternal, "INTERNAL", "-1"},
		"the code 0":        {connect.NewError(0, nil), connect.CodeInternal, "INTERNAL", "-1"},
		"a nil error":       {(*connect.Error)(nil), connect.CodeInternal, "INTERNAL", "-1"},
		"nil":               {nil, connect.CodeInternal, "INTERNAL", "-1"},
	} {
		got := connectlock.ErrorOf(test.err)
		if got.Code() != test.code || reasonOf(got) != test.reason || got.Meta().Get("Grpc-Retry-Pushback-Ms") != test.pushback {
			t.Errorf("%s: %v, %v", name, got, got.Meta())
		}
	}
	_, err := connectlock.Header("x-account").Read(connectlock.NewCall(t.Context(), transferred, connect.Peer{}, nil, nil))
	got := connectlock.ErrorOf(err)
	info, _ := infoOf(got)
	if want := `the header "X-Account"`; info.GetMetadata()["part"] != want || !strings.Contains(got.Message(), want) {
		t.Errorf("%v with %v", got, info)
	}
}

// uncomparable is an error that == panics on.
type uncomparable []error

func (uncomparable) Error() string     { return theKey }
func (e uncomparable) Unwrap() []error { return e }

// Whatever an error handler leaves undone is done. The error of the key or of a cause is none that the
// handler has chosen. Interceptors outside find the cause.
func TestErrorHandler(t *testing.T) {
	t.Parallel()
	own := connect.NewError(connect.CodeDataLoss, errors.New("of the key"))
	for name, test := range map[string]struct {
		key    error
		handle func(error) error
		code   connect.Code
		wraps  bool // the error that interceptors outside find wraps that of the key
	}{
		"its own":            {core.ErrNoKey, func(error) error { return notFound }, connect.CodeNotFound, false},
		"its own, wrapped":   {core.ErrNoKey, func(error) error { return fmt.Errorf("%s: %w", theKey, notFound) }, connect.CodeNotFound, false},
		"beside the error":   {core.ErrNoKey, func(err error) error { return errors.Join(err, notFound) }, connect.CodeNotFound, true},
		"beside the key's":   {own, func(err error) error { return fmt.Errorf("%w: %w", err, notFound) }, connect.CodeNotFound, true},
		"default":            {core.ErrNoKey, func(err error) error { return connectlock.ErrorOf(err) }, connect.CodeInvalidArgument, false},
		"nil":                {core.ErrNoKey, func(error) error { return nil }, connect.CodeInvalidArgument, true},
		"no code":            {core.ErrNoKey, func(error) error { return errors.New(theKey) }, connect.CodeInvalidArgument, true},
		"the error":          {core.ErrNoKey, func(err error) error { return err }, connect.CodeInvalidArgument, true},
		"the error, wrapped": {core.ErrNoKey, func(err error) error { return fmt.Errorf("%s: %w", theKey, err) }, connect.CodeInvalidArgument, true},
		"the key's":          {own, func(err error) error { return fmt.Errorf("x: %w", err) }, connect.CodeDataLoss, true},
		"not to be compared": {uncomparable{core.ErrNoKey}, func(err error) error { return err }, connect.CodeInvalidArgument, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := make(chan error, 1)
			outside := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
				return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
					reply, err := next(ctx, req)
					seen <- err
					return reply, err
				}
			})
			lock := connectlock.Interceptor(adaptertest.UnusedLocker(t), failing(test.key),
				connectlock.WithErrorHandler(func(c *connectlock.Call, err error) error {
					if c.Spec().Procedure != pb.Bank_Transfer_FullMethodName {
						t.Errorf("asked about %s", c.Spec().Procedure)
					}
					return test.handle(err)
				}))
			_, err := serve(t, &bank{}, locked(outside, lock)).transfer.CallUnary(within(t), transferOf(theKey))
			wantCode(t, err, test.code)
			if strings.Contains(err.Error(), theKey) {
				t.Errorf("the answer contains the key: %v", err)
			}
			cause := test.key
			if name == "not to be compared" {
				cause = core.ErrNoKey
			}
			if got := <-seen; errors.Is(got, cause) != test.wraps {
				t.Errorf("an interceptor outside got %v", got)
			}
		})
	}
}
