package protolock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/protolock"
)

// New returns all mistakes at once, those of the program too. Must panics with them.
func TestMistakesOfTheProgramAreNamed(t *testing.T) {
	t.Parallel()
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { key { literal: "l" } } lock { name: "account" key { source: "deposit" } key { field: "cents" } }`,
		"Settle":   `lock { key { source: "ada" } }`,
	})
	at := "reqlock: " + a.ParentFile().Path() + ": " + string(a.FullName())
	wrong := protolock.Source("deposit", core.First(grpclock.Metadata("x"), grpclock.Field[*pb.DepositRequest]("account.id")))
	ada := protolock.Source("ada", grpclock.Literal("ada"))
	for name, test := range map[string]struct {
		services []*grpc.ServiceDesc
		opts     []protolock.Option
		want     []string
	}{
		"no service":      {nil, nil, []string{"reqlock: protolock: New: there is no service"}},
		"nil":             {[]*grpc.ServiceDesc{nil}, nil, []string{"reqlock: protolock: New: a service is nil"}},
		"unknown":         {[]*grpc.ServiceDesc{{ServiceName: "bank.v7.Bank"}}, nil, []string{`reqlock: protolock: New: this program has no descriptor of the service "bank.v7.Bank"`}},
		"a message":       {[]*grpc.ServiceDesc{{ServiceName: "reqlock.bank.v1.Account"}}, nil, []string{`this program has no descriptor of the service "reqlock.bank.v1.Account"`}},
		"twice":           {[]*grpc.ServiceDesc{a.desc, a.desc}, []protolock.Option{ada, protolock.Source("deposit", literal)}, []string{"reqlock: protolock: New: the service \"" + string(a.FullName()) + "\" is given twice"}},
		"a source, twice": {a.descs(), []protolock.Option{ada, ada, protolock.Source("deposit", literal)}, []string{`reqlock: protolock: New: the source "ada" is given twice`}},
		"no sources": {a.descs(), nil, []string{
			at + `.Transfer: lock 2: key: source "deposit": there is no such source; none is given`,
			at + `.Settle: lock 1: key: source "ada": there is no such source; none is given`,
		}},
		"a source of another message": {a.descs(), []protolock.Option{ada, wrong}, []string{
			at + `.Transfer: lock 2: key: source "deposit": its key reads a *bankpb.DepositRequest, and the message of the method is a reqlock.bank.v1.TransferRequest`,
		}},
		"in code, too": {
			a.descs(), []protolock.Option{ada, protolock.Source("deposit", literal), protolock.InCode(grpclock.ByMethod(map[string]grpclock.Key{
				a.method("Settle"): literal,
			}).Named("account"))}, []string{at + `.Settle: a ByMethod of the program locks it, too: keep one of them`},
		},
		"none": {a.descs(), []protolock.Option{ada, protolock.Source("deposit", literal)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := protolock.New(test.services, test.opts...)
			if len(test.want) == 0 {
				if err != nil || rules == nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil || rules != nil || strings.Count(err.Error(), "\n") != len(test.want)-1 {
				t.Fatalf("got %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
			defer func() {
				if panicked, ok := recover().(error); !ok || panicked.Error() != err.Error() {
					t.Errorf("Must panics with %v", panicked)
				}
			}()
			protolock.Must(protolock.New(test.services, test.opts...))
		})
	}
	for what, register := range map[string]func(){
		"Source needs a name":                      func() { protolock.Source("", literal) },
		"Source: the key of \"a\" is the zero Key": func() { protolock.Source("a", grpclock.Key{}) },
		"InCode needs a key":                       func() { protolock.InCode(grpclock.Key{}) },
		"InCode needs the key of a ByMethod":       func() { protolock.InCode(literal) },
		"New: an option is empty":                  func() { protolock.Must(protolock.New(a.descs(), protolock.Option{})) },
	} {
		adaptertest.WantPanic(t, register, what)
	}
}

// Interceptors of rules refuse what those of the package refuse, and options that the rules say.
func TestInterceptorsOfRulesPanic(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	rules := protolock.Must(protolock.New(annotate(t, "", map[string]string{
		"Transfer": `lock { key { literal: "l" } } idempotent { key { metadata: "idempotency-key" } }`,
		"Deposit":  `lock { key { literal: "l" } }`,
	}).descs()))
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { key { literal: "l" } } lock { key { literal: "m" } permits: 5 }`,
		"Deposit":  `lock { key { literal: "l" } shared: true ttl { seconds: 3600 } }`,
	})
	shared, at := protolock.Must(protolock.New(a.descs())), a.ParentFile().Path()+": "+string(a.FullName())
	var clients []redis.UniversalClient
	for range 3 {
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		defer func() { _ = rdb.Close() }()
		clients = append(clients, rdb)
	}
	quorum := core.Must(core.NewQuorum(clients))
	adaptertest.CloseAfter(t, quorum)
	for what, register := range map[string]func(){
		"Rules.UnaryServerInterceptor needs a locker":                                        func() { rules.UnaryServerInterceptor(nil) },
		"Rules.StreamServerInterceptor needs a locker":                                       func() { rules.StreamServerInterceptor(nil) },
		"Rules.IdempotentUnaryServerInterceptor needs a locker":                              func() { rules.ServerOptions(nil) },
		"reqlock: protolock: Rules.IdempotentUnaryServerInterceptor: WithOptionalKey: write": func() { rules.IdempotentUnaryServerInterceptor(locks, core.WithOptionalKey()) },
		"WithoutFingerprint":        func() { rules.UnaryServerInterceptor(locks, core.WithoutFingerprint()) },
		"WithRetention":             func() { rules.StreamServerInterceptor(locks, core.WithRetention(time.Hour)) },
		"WithMinHold":               func() { rules.IdempotentUnaryServerInterceptor(locks, core.WithMinHold(time.Hour)) },
		"WithFailOpen":              func() { rules.IdempotentUnaryServerInterceptor(locks, core.WithFailOpen(true)) },
		"a quorum keeps no records": func() { rules.IdempotentUnaryServerInterceptor(quorum) },
		"reqlock: protolock: Rules.UnaryServerInterceptor: WithPermits": func() { rules.UnaryServerInterceptor(locks, core.WithPermits(5)) },
		"Rules.StreamServerInterceptor: WithPermits":                    func() { rules.StreamServerInterceptor(locks.With(core.WithShared(true))) },
		at + ".Transfer: lock 2: WithPermits: the servers of a quorum":  func() { shared.UnaryServerInterceptor(quorum) },
		at + ".Transfer: lock 2: WithPermits: WithFencing":              func() { shared.UnaryServerInterceptor(locks, core.WithFencing(true)) },
		at + ".Deposit: lock 1: WithShared: WithMinHold":                func() { shared.StreamServerInterceptor(locks, core.WithMinHold(time.Second)) },
		at + ".Deposit: lock 1: WithTTL: 1h0m0s is more than the quara": func() { shared.StreamServerInterceptor(quorum) },
	} {
		adaptertest.WantPanic(t, register, what)
	}
	shared.StreamServerInterceptor(locks, core.WithFencing(true)) // all readers of one phase have one number
}

// A rule without its interceptor has no effect, and the observer gets one event for it.
func TestRuleWithoutInterceptorIsReported(t *testing.T) {
	t.Parallel()
	sent := &warnings{}
	locks, _ := adaptertest.Locker(t, core.WithObserver(sent.observe))
	for name, test := range map[string]struct {
		options func(r *protolock.Rules) []grpc.ServerOption
		want    []string // the methods of the warnings, in order of their texts
	}{
		"ServerOptions": {func(r *protolock.Rules) []grpc.ServerOption { return r.ServerOptions(locks) }, nil},
		"unary": {func(r *protolock.Rules) []grpc.ServerOption {
			return []grpc.ServerOption{grpc.ChainUnaryInterceptor(r.UnaryServerInterceptor(locks))}
		}, []string{"Deposit declares a lock", "Transfer declares idempotent calls"}},
		"streams": {func(r *protolock.Rules) []grpc.ServerOption {
			return []grpc.ServerOption{grpc.ChainStreamInterceptor(r.StreamServerInterceptor(locks))}
		}, []string{"Settle declares a lock", "Transfer declares a lock", "Transfer declares idempotent calls"}},
		"idempotent": {func(r *protolock.Rules) []grpc.ServerOption {
			return []grpc.ServerOption{grpc.ChainUnaryInterceptor(r.IdempotentUnaryServerInterceptor(locks))}
		}, []string{"Deposit declares a lock", "Settle declares a lock", "Transfer declares a lock"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := annotate(t, "", map[string]string{
				"Transfer": `lock { key { field: "account.id" } } idempotent { key { field: "account.id" } }`,
				"Settle":   `lock { key { field: "account.id" } }`,
				"Deposit":  `lock { key { field: "account.id" } }`,
			})
			client := serveAnnotated(t, &bank{},
				[]annotatedBank{a}, test.options(protolock.Must(protolock.New(a.descs())))...)[0]
			for range 2 {
				_, _ = client.Balance(within(t), &pb.BalanceRequest{})
				_ = deposit(within(t), client)
			}
			got := sent.take()
			if len(got) != len(test.want) {
				t.Fatalf("the observer got %q", got)
			}
			for i, want := range test.want {
				if !strings.Contains(got[i], "/"+want) || !strings.Contains(got[i], "Rules.ServerOptions") {
					t.Errorf("the observer got %q, want %q", got[i], want)
				}
			}
		})
	}
}

// The methods of InCode count as declared. If no interceptor has their ByMethod, they run without
// a lock, and the observer gets one event for each.
func TestInCodeWithoutInterceptorIsReported(t *testing.T) {
	t.Parallel()
	sent := &warnings{}
	locks, _ := adaptertest.Locker(t, core.WithObserver(sent.observe))
	for name, test := range map[string]struct {
		more func(grpclock.Key) []grpc.ServerOption
		want []string
	}{
		"none": {func(grpclock.Key) []grpc.ServerOption { return nil }, []string{"Deposit", "Settle"}},
		"both": {func(key grpclock.Key) []grpc.ServerOption {
			return grpclock.ServerOptions(locks, key.Named("account"))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := annotate(t, "", map[string]string{"Transfer": `lock { key { field: "account.id" } }`})
			inCode := grpclock.ByMethod(map[string]grpclock.Key{a.method("Settle"): literal, a.method("Deposit"): literal})
			rules := protolock.Must(protolock.New(a.descs(), protolock.InCode(inCode)))
			client := serveAnnotated(t, &bank{}, []annotatedBank{a}, append(rules.ServerOptions(locks), test.more(inCode)...)...)[0]
			for range 2 {
				_, _ = client.Transfer(within(t), transferOf("42"))
			}
			got := sent.take()
			if len(got) != len(test.want) {
				t.Fatalf("the observer got %q", got)
			}
			for i, want := range test.want {
				if !strings.Contains(got[i], "InCode names "+a.method(want)+", which runs without a lock") {
					t.Errorf("the observer got %q, want %q", got[i], want)
				}
			}
		})
	}
}

// A message of another descriptor than that of the program is a mistake of the server.
func TestAnnotatedFieldRefusesAnotherMessage(t *testing.T) {
	t.Parallel()
	a := annotate(t, "", map[string]string{"Transfer": `lock { key { field: "account.id" } }`})
	interceptor := protolock.Must(protolock.New(a.descs())).UnaryServerInterceptor(adaptertest.UnusedLocker(t))
	for _, message := range []any{&pb.DepositRequest{Account: &pb.Account{Id: "42"}}, "no message"} {
		_, err := interceptor(t.Context(), message, &grpc.UnaryServerInfo{FullMethod: a.method("Transfer")},
			func(context.Context, any) (any, error) { return nil, errors.New("the handler has run") })
		wantCode(t, err, codes.Internal)
		if reasonOf(err) != "KEY_ERROR" {
			t.Errorf("%T: %v", message, err)
		}
	}
}
