package grpclock_test

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
)

// AnnotatedErr returns all mistakes at once, those of the program too. Annotated panics with them.
func TestMistakesOfTheProgramAreNamed(t *testing.T) {
	t.Parallel()
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { key { literal: "l" } } lock { name: "account" key { source: "deposit" } key { field: "cents" } }`,
		"Settle":   `lock { key { source: "ada" } }`,
	})
	at := "reqlock: " + a.ParentFile().Path() + ": " + string(a.FullName())
	wrong := grpclock.Source("deposit", core.First(grpclock.Metadata("x"), grpclock.Field[*pb.DepositRequest]("account.id")))
	ada := grpclock.Source("ada", grpclock.Literal("ada"))
	for name, test := range map[string]struct {
		services []*grpc.ServiceDesc
		opts     []grpclock.RuleOption
		want     []string
	}{
		"no service":      {nil, nil, []string{"reqlock: grpclock: Annotated: there is no service"}},
		"nil":             {[]*grpc.ServiceDesc{nil}, nil, []string{"reqlock: grpclock: Annotated: a service is nil"}},
		"unknown":         {[]*grpc.ServiceDesc{{ServiceName: "bank.v7.Bank"}}, nil, []string{`reqlock: grpclock: Annotated: this program has no descriptor of the service "bank.v7.Bank"`}},
		"a message":       {[]*grpc.ServiceDesc{{ServiceName: "reqlock.bank.v1.Account"}}, nil, []string{`this program has no descriptor of the service "reqlock.bank.v1.Account"`}},
		"twice":           {[]*grpc.ServiceDesc{a.desc, a.desc}, []grpclock.RuleOption{ada, grpclock.Source("deposit", literal)}, []string{"reqlock: grpclock: Annotated: the service \"" + string(a.FullName()) + "\" is given twice"}},
		"a source, twice": {a.descs(), []grpclock.RuleOption{ada, ada, grpclock.Source("deposit", literal)}, []string{`reqlock: grpclock: Annotated: the source "ada" is given twice`}},
		"no sources": {a.descs(), nil, []string{
			at + `.Transfer: lock 2: key: source "deposit": there is no such source; none is given`,
			at + `.Settle: lock 1: key: source "ada": there is no such source; none is given`,
		}},
		"a source of another message": {a.descs(), []grpclock.RuleOption{ada, wrong}, []string{
			at + `.Transfer: lock 2: key: source "deposit": its key reads a *bankpb.DepositRequest, and the message of the method is a reqlock.bank.v1.TransferRequest`,
		}},
		"in code, too": {
			a.descs(), []grpclock.RuleOption{ada, grpclock.Source("deposit", literal), grpclock.InCode(grpclock.ByMethod(map[string]grpclock.Key{
				a.method("Settle"): literal,
			}).Named("account"))}, []string{at + `.Settle: a ByMethod of the program locks it, too: keep one of them`},
		},
		"none": {a.descs(), []grpclock.RuleOption{ada, grpclock.Source("deposit", literal)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := grpclock.AnnotatedErr(test.services, test.opts...)
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
					t.Errorf("Annotated panics with %v", panicked)
				}
			}()
			grpclock.Annotated(test.services, test.opts...)
		})
	}
	for what, register := range map[string]func(){
		"Source needs a name":                      func() { grpclock.Source("", literal) },
		"Source: the key of \"a\" is the zero Key": func() { grpclock.Source("a", grpclock.Key{}) },
		"InCode needs a key":                       func() { grpclock.InCode(grpclock.Key{}) },
		"InCode needs the key of a ByMethod":       func() { grpclock.InCode(literal) },
		"Annotated: an option is empty":            func() { grpclock.Annotated(a.descs(), grpclock.RuleOption{}) },
	} {
		adaptertest.WantPanic(t, register, what)
	}
}

// Interceptors of rules refuse what those of the package refuse, and options that the rules say.
func TestInterceptorsOfRulesPanic(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	rules := grpclock.Annotated(annotate(t, "", map[string]string{
		"Transfer": `lock { key { literal: "l" } } idempotent { key { metadata: "idempotency-key" } }`,
		"Deposit":  `lock { key { literal: "l" } }`,
	}).descs())
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { key { literal: "l" } } lock { key { literal: "m" } permits: 5 }`,
		"Deposit":  `lock { key { literal: "l" } shared: true ttl { seconds: 3600 } }`,
	})
	shared, at := grpclock.Annotated(a.descs()), a.ParentFile().Path()+": "+string(a.FullName())
	var clients []redis.UniversalClient
	for range 3 {
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		defer func() { _ = rdb.Close() }()
		clients = append(clients, rdb)
	}
	quorum := core.Must(core.NewQuorum(clients))
	adaptertest.CloseAfter(t, quorum)
	for what, register := range map[string]func(){
		"Rules.Unary needs a locker":      func() { rules.Unary(nil) },
		"Rules.Stream needs a locker":     func() { rules.Stream(nil) },
		"Rules.Idempotent needs a locker": func() { rules.ServerOptions(nil) },
		"Rules.Idempotent: WithOptional":  func() { rules.Idempotent(locks, core.WithOptionalKey()) },
		"WithoutFingerprint":              func() { rules.Unary(locks, core.WithoutFingerprint()) },
		"WithRetention":                   func() { rules.Stream(locks, core.WithRetention(time.Hour)) },
		"WithMinHold":                     func() { rules.Idempotent(locks, core.WithMinHold(time.Hour)) },
		"WithFailOpen":                    func() { rules.Idempotent(locks, core.WithFailOpen(true)) },
		"a quorum keeps no records":       func() { rules.Idempotent(quorum) },
		"Rules.Unary: WithPermits":        func() { rules.Unary(locks, core.WithPermits(5)) },
		"Rules.Stream: WithPermits":       func() { rules.Stream(locks.With(core.WithShared(true))) },
		at + ".Transfer: lock 2: WithPermits: the servers of a quorum":  func() { shared.Unary(quorum) },
		at + ".Transfer: lock 2: WithPermits: WithFencing":              func() { shared.Unary(locks, core.WithFencing(true)) },
		at + ".Deposit: lock 1: WithShared: WithMinHold":                func() { shared.Stream(locks, core.WithMinHold(time.Second)) },
		at + ".Deposit: lock 1: WithTTL: 1h0m0s is more than the quara": func() { shared.Stream(quorum) },
	} {
		adaptertest.WantPanic(t, register, what)
	}
	shared.Stream(locks, core.WithFencing(true)) // all readers of one phase have one number
}

// A rule without its interceptor has no effect, and the observer gets one event for it.
func TestRuleWithoutInterceptorIsReported(t *testing.T) {
	t.Parallel()
	sent := &warnings{}
	locks, _ := adaptertest.Locker(t, core.WithObserver(sent.observe))
	for name, test := range map[string]struct {
		options func(r *grpclock.Rules) []grpc.ServerOption
		want    []string // the methods of the warnings, in order of their texts
	}{
		"ServerOptions": {func(r *grpclock.Rules) []grpc.ServerOption { return r.ServerOptions(locks) }, nil},
		"unary": {func(r *grpclock.Rules) []grpc.ServerOption {
			return []grpc.ServerOption{grpc.ChainUnaryInterceptor(r.Unary(locks))}
		}, []string{"Deposit declares a lock", "Transfer declares idempotent calls"}},
		"streams": {func(r *grpclock.Rules) []grpc.ServerOption {
			return []grpc.ServerOption{grpc.ChainStreamInterceptor(r.Stream(locks))}
		}, []string{"Settle declares a lock", "Transfer declares a lock", "Transfer declares idempotent calls"}},
		"idempotent": {func(r *grpclock.Rules) []grpc.ServerOption {
			return []grpc.ServerOption{grpc.ChainUnaryInterceptor(r.Idempotent(locks))}
		}, []string{"Deposit declares a lock", "Settle declares a lock", "Transfer declares a lock"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := annotate(t, "", map[string]string{
				"Transfer": `lock { key { field: "account.id" } } idempotent { key { field: "account.id" } }`,
				"Settle":   `lock { key { field: "account.id" } }`,
				"Deposit":  `lock { key { field: "account.id" } }`,
			})
			client := serveAnnotated(t, &bank{deposit: func(s depositServer) error { _, err := sum(s); return err }},
				[]annotatedBank{a}, test.options(grpclock.Annotated(a.descs()))...)[0]
			for range 2 {
				_, _ = client.Balance(within(t), &pb.BalanceRequest{})
				_, _ = deposit(within(t), client, 1)
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
			rules := grpclock.Annotated(a.descs(), grpclock.InCode(inCode))
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
	interceptor := grpclock.Annotated(a.descs()).Unary(adaptertest.UnusedLocker(t))
	for _, message := range []any{&pb.DepositRequest{Account: &pb.Account{Id: "42"}}, "no message"} {
		_, err := interceptor(t.Context(), message, &grpc.UnaryServerInfo{FullMethod: a.method("Transfer")},
			func(context.Context, any) (any, error) { return nil, errors.New("the handler has run") })
		wantCode(t, err, codes.Internal)
		if reasonOf(err) != "KEY_ERROR" {
			t.Errorf("%T: %v", message, err)
		}
	}
}
