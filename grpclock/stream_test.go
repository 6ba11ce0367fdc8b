package grpclock_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

type (
	watchServer   = grpc.ServerStreamingServer[pb.BalanceReply]
	depositServer = grpc.ClientStreamingServer[pb.DepositRequest, pb.BalanceReply]
	batchServer   = grpc.BidiStreamingServer[pb.TransferRequest, pb.TransferReply]
)

// accountOf reads the account of all the requests.
var accountOf = grpclock.Message(func(m interface{ GetAccount() *pb.Account }) string { return m.GetAccount().GetId() })

// atEnd returns nil for io.EOF, and any other error unchanged.
func atEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// wantLease checks that a stream runs under the lock of theKey.
func wantLease(t *testing.T, s grpc.ServerStream) {
	t.Helper()
	lease, ok := core.LeaseFromContext(s.Context())
	if !ok || lease.Key() != theKey || s.Context().Err() != nil {
		t.Errorf("lease of %q, %v; %v", lease.Key(), ok, s.Context().Err())
	}
}

// In a server stream the handler has its lock from the beginning.
func TestServerStream(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	client := serve(t, &bank{watch: func(_ *pb.BalanceRequest, s watchServer) error {
		wantLease(t, s)
		for i := range 3 {
			if err := s.Send(&pb.BalanceReply{Cents: int64(i)}); err != nil {
				return err
			}
		}
		if !adaptertest.IsHeld(t, rdb) {
			t.Error("the handler runs, and the key is free")
		}
		return nil
	}}, streams(locks, grpclock.Field[*pb.BalanceRequest]("account.id")))
	watch := func() (received int, err error) {
		s, err := client.Watch(within(t), &pb.BalanceRequest{Account: &pb.Account{Id: theKey}})
		if err != nil {
			return 0, err
		}
		for ; ; received++ {
			if _, err := s.Recv(); err != nil {
				return received, atEnd(err)
			}
		}
	}
	if received, err := watch(); received != 3 || err != nil {
		t.Errorf("%d messages, %v", received, err)
	}
	suite.Eventually(t, "the key is free", func() bool { return !adaptertest.IsHeld(t, rdb) })
	adaptertest.Hold(t, rdb)
	if received, err := watch(); received != 0 || status.Code(err) != codes.Aborted || reasonOf(err) != "BUSY" {
		t.Errorf("%d messages, %v", received, err)
	}
}

// deposit pays coins into theKey and returns the reply.
func deposit(ctx context.Context, client pb.BankClient, coins int) (*pb.BalanceReply, error) {
	s, err := client.Deposit(ctx)
	if err != nil {
		return nil, err
	}
	for range coins {
		// io.EOF says that the server has ended the stream: CloseAndRecv says why.
		if err := s.Send(&pb.DepositRequest{Account: &pb.Account{Id: theKey}, Cents: 1}); atEnd(err) != nil {
			return nil, err
		}
	}
	return s.CloseAndRecv()
}

// sum adds up what a client deposits.
func sum(s depositServer) (cents int64, err error) {
	for {
		m, err := s.Recv()
		if err != nil {
			return cents, atEnd(err)
		}
		cents += m.GetCents()
	}
}

// In a client stream the first message takes the lock.
func TestClientStream(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	client := serve(t, &bank{deposit: func(s depositServer) error {
		early := s.Context()
		if _, ok := core.LeaseFromContext(early); ok {
			t.Error("there is a lease before there is a message")
		}
		cents, err := sum(s)
		if err != nil {
			return err
		}
		wantLease(t, s)
		if early != s.Context() {
			t.Error("the stream has another context now")
		}
		if err := s.SetHeader(metadata.Pairs("x-a", "1")); err != nil {
			t.Errorf("SetHeader: %v", err)
		}
		return s.SendAndClose(&pb.BalanceReply{Cents: cents})
	}}, streams(locks, accountOf))
	reply, err := deposit(within(t), client, 3)
	if reply.GetCents() != 3 || err != nil {
		t.Errorf("%v, %v", reply, err)
	}
	suite.Eventually(t, "the key is free", func() bool { return !adaptertest.IsHeld(t, rdb) })
	adaptertest.Hold(t, rdb)
	_, err = deposit(within(t), client, 3)
	wantCode(t, err, codes.Aborted)
}

// A stream that ends without a message has no key from a message.
func TestStreamWithoutMessage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		key  grpclock.Key
		code codes.Code
	}{
		"needs one":        {accountOf, codes.InvalidArgument},
		"needs any at all": {literalMessage, codes.InvalidArgument},
		"has another key":  {core.First(accountOf, literal), codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := adaptertest.Locker(t)
			client := serve(t, &bank{deposit: func(s depositServer) error {
				if _, err := sum(s); err != nil {
					return nil //nolint:nilerr // the client gets the refusal anyway
				}
				wantLease(t, s)
				return s.SendAndClose(&pb.BalanceReply{})
			}}, streams(locks, test.key))
			_, err := deposit(within(t), client, 0)
			wantCode(t, err, test.code)
		})
	}
}

// A key decides when the stream opens only if it does not read the message.
func TestKeyThatReadsTheMessageWaitsForIt(t *testing.T) {
	t.Parallel()
	custom := func(c *grpclock.Call) (string, error) {
		m, ok := c.Message().(*pb.DepositRequest)
		if !ok {
			return "", core.ErrSkip // would run without a lock
		}
		return m.GetAccount().GetId(), nil
	}
	account := grpclock.Metadata("x-account")
	for name, test := range map[string]struct {
		key     grpclock.Key
		opening bool // locked before the first message
		locked  bool // afterwards
	}{
		"metadata":                  {key: account, opening: true, locked: true},
		"message":                   {key: accountOf, locked: true},
		"skip":                      {key: failing(core.ErrSkip)},
		"a function of one's own":   {key: core.KeyOf(custom), locked: true},
		"metadata, else message":    {key: core.First(account, accountOf), opening: true, locked: true},
		"message, else metadata":    {key: core.First(accountOf, account), locked: true},
		"metadata and message":      {key: core.All(account, accountOf), locked: true},
		"a condition on the method": {key: accountOf.When(func(c *grpclock.Call) bool { return c.FullMethod() == "" })},
		"a condition on the message": {key: account.When(func(c *grpclock.Call) bool {
			m, _ := c.Message().(*pb.DepositRequest)
			return m.GetCents() > 0
		}), locked: true},
		"skip after the message": {key: account.When(func(c *grpclock.Call) bool {
			m, _ := c.Message().(*pb.DepositRequest)
			return m.GetCents() > 1
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := adaptertest.Locker(t)
			client := serve(t, &bank{deposit: func(s depositServer) error {
				if lease, ok := core.LeaseFromContext(s.Context()); ok != test.opening {
					t.Errorf("at the opening, lease of %q", lease.Key())
				}
				if _, err := sum(s); err != nil {
					return err
				}
				if lease, ok := core.LeaseFromContext(s.Context()); ok != test.locked || ok && lease.Key() != theKey {
					t.Errorf("after the message, lease of %q", lease.Key())
				}
				return s.SendAndClose(&pb.BalanceReply{})
			}}, streams(locks, test.key))
			_, err := deposit(metadata.AppendToOutgoingContext(within(t), "x-account", theKey), client, 2)
			wantCode(t, err, codes.OK)
		})
	}
}

// literalMessage locks theKey, but wants to see the message first.
var literalMessage = core.KeyOf(func(c *grpclock.Call) (string, error) {
	if c.Message() == nil {
		return "", core.ErrNoKey
	}
	return theKey, nil
})
