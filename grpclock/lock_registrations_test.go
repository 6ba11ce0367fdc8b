package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

type user struct{ id int }

func (u *user) ID() string { return strconv.Itoa(u.id) }

type userKey struct{}

// account is a key of an application.
var account = core.KeyOf(func(c *grpclock.Call) (string, error) {
	m, ok := c.Message().(*pb.TransferRequest)
	if !ok {
		return "", core.ErrSkip
	}
	return m.GetAccount().GetId(), nil
})

func large(c *grpclock.Call) bool {
	m, _ := c.Message().(*pb.TransferRequest)
	return m.GetCents() > 100
}

// Registrations in all forms compile.
func TestRegistrations(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	type methods = map[string]grpclock.Key
	secret := []byte("secret")

	interceptors := []any{
		// Fields and getters.
		grpclock.UnaryServerInterceptor(locks, grpclock.Field[*pb.TransferRequest]("account.id")),
		grpclock.StreamServerInterceptor(locks, grpclock.Field[*pb.DepositRequest]("account.id"), core.WithWait(2*time.Second)),
		grpclock.UnaryServerInterceptor(locks, grpclock.Message((*pb.PlaceOrderRequest).GetItem)),
		grpclock.UnaryServerInterceptor(locks, grpclock.Message(func(m *pb.TransferRequest) string { return m.GetAccount().GetId() })),
		grpclock.UnaryServerInterceptor(locks, grpclock.Message(func(m interface{ GetAccount() *pb.Account }) string {
			return m.GetAccount().GetId()
		})),
		// The caller and the method.
		grpclock.UnaryServerInterceptor(locks, grpclock.Metadata("x-tenant")),
		grpclock.UnaryServerInterceptor(locks, grpclock.Peer()),
		grpclock.UnaryServerInterceptor(locks, grpclock.Method()),
		grpclock.StreamServerInterceptor(locks, grpclock.Literal("nightly-report")),
		grpclock.UnaryServerInterceptor(locks, grpclock.ContextValue(userKey{})),
		grpclock.UnaryServerInterceptor(locks, grpclock.ContextValueAs(userKey{}, (*user).ID)),
		grpclock.UnaryServerInterceptor(locks, grpclock.ContextValueAs(userKey{}, func(u *user) string { return u.ID() })),
		// Keys of the application.
		grpclock.UnaryServerInterceptor(locks, account),
		grpclock.UnaryServerInterceptor(locks, core.KeyOf(func(c *grpclock.Call) (string, error) {
			if strings.HasPrefix(c.FullMethod(), "/grpc.") {
				return "", core.ErrSkip
			}
			return c.FullMethod(), nil
		})),
		grpclock.UnaryServerInterceptor(locks, core.KeyOf(func(c *grpclock.Call) (string, error) {
			md, _ := metadata.FromIncomingContext(c.Context())
			if len(md["x-tenant"]) != 1 {
				return "", status.Error(codes.Unauthenticated, "the user is unknown")
			}
			return md["x-tenant"][0], nil
		})),
		grpclock.UnaryServerInterceptor(locks, core.Getter(func(c *grpclock.Call) string { return fmt.Sprint(c.Context().Value(userKey{})) })),
		// Combined.
		grpclock.UnaryServerInterceptor(locks, grpclock.Field[*pb.TransferRequest]("account.id").Named("account")),
		grpclock.UnaryServerInterceptor(locks, grpclock.ContextValueAs(userKey{}, (*user).ID).Named("user")),
		grpclock.UnaryServerInterceptor(locks, account.Named("account")),
		grpclock.UnaryServerInterceptor(locks, core.Join(grpclock.Metadata("x-tenant"), grpclock.Field[*pb.TransferRequest]("account.id"))),
		grpclock.UnaryServerInterceptor(locks, core.Join(grpclock.ContextValue(userKey{}), grpclock.IdempotencyKey())),
		grpclock.UnaryServerInterceptor(locks, core.Join(grpclock.Method(), grpclock.Peer().Named("peer"))),
		grpclock.StreamServerInterceptor(locks, core.First(grpclock.Metadata("x-account"), grpclock.Field[*pb.DepositRequest]("account.id"))),
		grpclock.UnaryServerInterceptor(locks, account.When(large)),
		grpclock.UnaryServerInterceptor(locks, grpclock.Field[*pb.TransferRequest]("account.id").When(large)),
		grpclock.UnaryServerInterceptor(locks, grpclock.Peer().When(func(c *grpclock.Call) bool {
			return c.FullMethod() != pb.Bank_Balance_FullMethodName
		})),
		grpclock.UnaryServerInterceptor(locks, grpclock.Metadata("authorization").Hashed()),
		grpclock.UnaryServerInterceptor(locks, grpclock.ContextValue(userKey{}).Named("user").HMAC(secret)),
		grpclock.UnaryServerInterceptor(locks, core.Getter((*grpclock.Call).FullMethod).Hashed()),
		// Methods.
		grpclock.UnaryServerInterceptor(locks, grpclock.ByMethod(map[string]grpclock.Key{
			pb.Bank_Transfer_FullMethodName:   grpclock.Field[*pb.TransferRequest]("account.id"),
			pb.Bank_PlaceOrder_FullMethodName: grpclock.ContextValueAs(userKey{}, (*user).ID).Named("user"),
			pb.Bank_Settle_FullMethodName:     account,
			pb.Bank_Balance_FullMethodName:    core.KeyOf(func(*grpclock.Call) (string, error) { return "", core.ErrSkip }),
		})),
		grpclock.StreamServerInterceptor(locks, grpclock.ByMethod(methods{
			pb.Bank_Deposit_FullMethodName: grpclock.Message(func(m *pb.DepositRequest) string { return m.GetAccount().GetId() }),
			"/reqlock.bank.v1.Bank/Batch":  core.First(grpclock.Metadata("x-account"), account),
		}).Named("account")),
		// Options of core and of this package in one list, and views.
		grpclock.UnaryServerInterceptor(locks, core.All(grpclock.Field[*pb.TransferRequest]("account.id").Named("account"), grpclock.Field[*pb.TransferRequest]("payee.id").Named("account")), core.WithWait(2*time.Second)),
		grpclock.UnaryServerInterceptor(locks.With(core.WithTTL(time.Minute)), core.All(account, grpclock.Peer()), core.WithFailOpen(true)),
		grpclock.UnaryServerInterceptor(locks, account, grpclock.WithErrorHandler(func(c *grpclock.Call, err error) error {
			if errors.Is(err, core.ErrBusy) {
				return status.Errorf(codes.AlreadyExists, "%s runs already", c.FullMethod())
			}
			return grpclock.StatusOf(err).Err()
		}), core.WithRetryAfter(5*time.Second)),
		// Idempotent calls.
		grpclock.IdempotentUnaryServerInterceptor(locks, core.Join(grpclock.ContextValue(userKey{}), grpclock.IdempotencyKey())),
		grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.IdempotencyKey(), core.WithOptionalKey()),
		grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.Metadata("x-request"), core.WithOptionalKey("x-request"),
			core.WithWait(2*time.Second), core.WithRetention(time.Hour), core.WithRerunUnknown(true), core.WithMaxAnswer(1<<16)),
		grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.ByMethod(methods{
			pb.Bank_Transfer_FullMethodName: grpclock.IdempotencyKey(),
		}), core.WithoutFingerprint(), grpclock.WithStored(func(code codes.Code) bool { return code == codes.OK })),
		grpclock.IdempotentUnaryServerInterceptor(locks, grpclock.IdempotencyKey(), core.WithFingerprint(func(c *grpclock.Call) ([]byte, error) {
			key, err := account.Read(c)
			return []byte(key.Raw()), err
		})),
	}

	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			return next(ctx, req)
		}, grpclock.UnaryServerInterceptor(locks, account)),
		grpc.StreamInterceptor(grpclock.StreamServerInterceptor(locks, account)),
	)
	server.Stop()

	if len(interceptors) < 30 {
		t.Errorf("%d registrations", len(interceptors))
	}
}
