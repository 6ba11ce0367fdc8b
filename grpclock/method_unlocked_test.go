package grpclock_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// warnings records the texts of Warned events.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) observe(e core.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Kind == core.Warned {
		w.texts = append(w.texts, e.Err.Error())
	}
}

// take returns the texts since the last call, in order of the alphabet.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	slices.Sort(texts)
	return texts
}

// transferAndDeposit locks a unary method and a stream.
func transferAndDeposit() grpclock.Key {
	return grpclock.ByMethod(map[string]grpclock.Key{
		pb.Bank_Transfer_FullMethodName: grpclock.Field[*pb.TransferRequest]("account.id").Named("account"),
		pb.Bank_Deposit_FullMethodName:  grpclock.Field[*pb.DepositRequest]("account.id").Named("account"),
	})
}

// A method of a ByMethod for which the server has no interceptor runs without a lock, and the
// observer gets one event.
func TestMethodWithoutInterceptorIsReported(t *testing.T) {
	t.Parallel()
	sent := &warnings{}
	locks, _ := adaptertest.Locker(t, core.WithObserver(sent.observe))
	user := grpclock.Metadata("x-user")
	for name, test := range map[string]struct {
		server func(key grpclock.Key) []grpc.ServerOption
		want   string // in the only warning; "": none
	}{
		"unary only": {func(key grpclock.Key) []grpc.ServerOption {
			return []grpc.ServerOption{unary(locks, key)}
		}, pb.Bank_Deposit_FullMethodName},
		"streams only": {func(key grpclock.Key) []grpc.ServerOption {
			return []grpc.ServerOption{streams(locks, key)}
		}, pb.Bank_Transfer_FullMethodName},
		"both": {func(key grpclock.Key) []grpc.ServerOption {
			return []grpc.ServerOption{unary(locks, key), streams(locks, key)}
		}, ""},
		"ServerOptions": {func(key grpclock.Key) []grpc.ServerOption {
			return grpclock.ServerOptions(locks, key)
		}, ""},
		"unary only, of All": {func(key grpclock.Key) []grpc.ServerOption {
			return []grpc.ServerOption{unary(locks, core.All(literal, key, key))}
		}, pb.Bank_Deposit_FullMethodName},
		"unary only, of several keys with a name": {func(grpclock.Key) []grpc.ServerOption {
			several := map[string]grpclock.Key{pb.Bank_Deposit_FullMethodName: core.All(literal, grpclock.Method())}
			return []grpc.ServerOption{unary(locks, grpclock.ByMethod(several).Named("account"))}
		}, pb.Bank_Deposit_FullMethodName},
		"unary only, part of a key": {func(key grpclock.Key) []grpc.ServerOption {
			return []grpc.ServerOption{unary(locks, core.Join(grpclock.Method(), user, key).Hashed())}
		}, pb.Bank_Deposit_FullMethodName},
		"streams with another form of the key": {func(key grpclock.Key) []grpc.ServerOption {
			return []grpc.ServerOption{unary(locks, key), streams(locks, core.First(user, key))}
		}, ""},
		"idempotent only": {func(key grpclock.Key) []grpc.ServerOption {
			return []grpc.ServerOption{grpc.UnaryInterceptor(grpclock.IdempotentUnaryServerInterceptor(locks, key))}
		}, pb.Bank_Deposit_FullMethodName},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, &bank{deposit: func(s depositServer) error {
				_, err := sum(s)
				return err
			}}, test.server(transferAndDeposit())...)
			for range 2 {
				_, _ = client.Transfer(within(t), transferOf("42"))
				_, _ = deposit(within(t), client, 1)
			}
			got := sent.take()
			if test.want == "" {
				if len(got) != 0 {
					t.Errorf("the observer got %q", got)
				}
				return
			}
			if len(got) != 1 || !strings.Contains(got[0], test.want) || !strings.Contains(got[0], "ServerOptions") ||
				!strings.HasPrefix(got[0], "reqlock: grpclock: ") {
				t.Errorf("the observer got %q, want one warning of %s", got, test.want)
			}
		})
	}
}

// ServerOptions does not make idempotent calls: the advice is to leave the stream out.
func TestStreamOfIdempotentInterceptorIsReported(t *testing.T) {
	t.Parallel()
	told := &warnings{}
	locks, _ := adaptertest.Locker(t, core.WithObserver(told.observe))
	interceptor := grpclock.IdempotentUnaryServerInterceptor(locks, transferAndDeposit())
	info := &grpc.UnaryServerInfo{FullMethod: pb.Bank_Balance_FullMethodName}
	for range 2 {
		_, _ = interceptor(t.Context(), nil, info, func(context.Context, any) (any, error) { return nil, nil })
	}
	got := told.take()
	if len(got) != 1 || !strings.Contains(got[0], pb.Bank_Deposit_FullMethodName) ||
		!strings.Contains(got[0], "IdempotentUnaryServerInterceptor does not cover streams: leave it out") {
		t.Errorf("warnings %q", got)
	}
}

// ServerOptions locks unary calls and streams.
func TestServerOptions(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	adaptertest.Hold(t, rdb)
	client := serve(t, &bank{deposit: func(s depositServer) error {
		_, err := sum(s)
		return err
	}}, grpclock.ServerOptions(locks, grpclock.ByMethod(map[string]grpclock.Key{
		pb.Bank_Transfer_FullMethodName: grpclock.Field[*pb.TransferRequest]("account.id"),
		pb.Bank_Deposit_FullMethodName:  grpclock.Field[*pb.DepositRequest]("account.id"),
	}))...)
	_, err := client.Transfer(within(t), transferOf(theKey))
	wantCode(t, err, codes.Aborted)
	_, err = deposit(within(t), client, 1)
	wantCode(t, err, codes.Aborted)
	_, err = client.Balance(within(t), &pb.BalanceRequest{Account: &pb.Account{Id: theKey}})
	wantCode(t, err, codes.OK)

	adaptertest.WantPanic(t, func() { grpclock.ServerOptions(nil, literal) }, "ServerOptions needs a locker")
	adaptertest.WantPanic(t, func() { grpclock.ServerOptions(locks, grpclock.Key{}) }, "ServerOptions needs a key")
	adaptertest.WantPanic(t, func() { grpclock.ServerOptions(locks, literal, core.WithoutFingerprint()) }, "WithoutFingerprint")
}

// A key for another message than that of its method is found at registration, also
// as a part of another key.
func TestByMethodRefusesKeyOfAnotherMessage(t *testing.T) {
	t.Parallel()
	wrong := grpclock.Field[*pb.DepositRequest]("account.id")
	right := grpclock.Field[*pb.TransferRequest]("account.id")
	user, header := grpclock.ContextValue(userKey{}), grpclock.Metadata("x-account")
	for name, key := range map[string]grpclock.Key{
		"Field":   wrong,
		"Message": grpclock.Message((*pb.PlaceOrderRequest).GetItem),
		"an interface": grpclock.Message(func(interface{ GetItem() string }) string {
			t.Error("the getter was called")
			return ""
		}),
		"in Named":  wrong.Named("account"),
		"in Hashed": wrong.Hashed(),
		"in HMAC":   wrong.HMAC([]byte("secret")),
		"in Join":   core.Join(user, grpclock.Peer(), wrong),
		"in First":  core.First(header, right, wrong),
		"in both":   core.Join(grpclock.Method(), core.First(grpclock.IdempotencyKey(), wrong)).Named("account"),
	} {
		message := adaptertest.PanicText(func() {
			grpclock.ByMethod(map[string]grpclock.Key{pb.Bank_Transfer_FullMethodName: key})
		})
		if !strings.HasPrefix(message, `reqlock: grpclock: ByMethod: "`+pb.Bank_Transfer_FullMethodName+`": `) ||
			!strings.Contains(message, "reqlock.bank.v1.TransferRequest") || strings.Contains(message, "\n") {
			t.Errorf("%s: panic %q", name, message)
		}
	}
}

// Registration reads no key, and calls no function of the application.
func TestRegistrationReadsNoKey(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	called := func() bool { t.Error("a function of the application was called"); return true }
	own := core.Getter(func(*grpclock.Call) string { called(); return "" })
	for _, key := range []grpclock.Key{
		own,
		own.Named("own"),
		literal.When(func(*grpclock.Call) bool { return called() }),
		grpclock.Message(func(any) string { called(); return "" }),
		grpclock.Message(func(interface{ GetAccount() *pb.Account }) string { called(); return "" }),
		grpclock.Message(func(string) string { called(); return "" }), // of another codec
	} {
		grpclock.ServerOptions(locks, grpclock.ByMethod(map[string]grpclock.Key{pb.Bank_Transfer_FullMethodName: key}))
		grpclock.ServerOptions(locks, key)
	}
}
