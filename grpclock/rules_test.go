package grpclock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// all returns all lines of a table.
func all(r *grpclock.Rules) (lines []string) {
	for rule := range r.All() {
		lines = append(lines, rule.String())
	}
	return lines
}

// Calls lock the keys that their methods declare. Methods that declare nothing, and methods of
// other services, run without a lock.
func TestAnnotatedMethodsLockTheirKeys(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { key { field: "account.id" } } lock { key { field: "payee.id" } }`,
		"Settle":   `lock { name: "account" key { source: "tenant" } key { metadata: "x-account" } key { literal: "l" } }`,
		"Deposit":  `lock { key { field: "account.id" } }`,
		"Balance":  `unlocked: true`,
	})
	tenant := grpclock.Source("tenant", func(*grpclock.Call) (string, error) { return "acme", nil })
	rules := grpclock.Annotated(a.descs(), tenant)
	var keys [][]string
	b := &bank{
		transfer: func(ctx context.Context, _ *pb.TransferRequest) error {
			var held []string
			for _, lease := range grpclock.Leases(ctx) {
				held = append(held, lease.Key())
			}
			keys = append(keys, held)
			return nil
		},
		deposit: func(s depositServer) error { _, err := sum(s); return err },
	}
	client := serveAnnotated(t, b, []annotatedBank{a}, rules.ServerOptions(locks)...)[0]

	both := &pb.TransferRequest{Account: &pb.Account{Id: "z"}, Payee: &pb.Account{Id: "b"}}
	_, err := client.Transfer(within(t), both)
	wantCode(t, err, codes.OK)
	if len(keys) != 1 || !slices.Equal(keys[0], []string{"z", "b"}) {
		t.Errorf("the handler holds %q", keys)
	}
	adaptertest.Hold(t, rdb)
	for _, held := range []*pb.TransferRequest{
		{Account: &pb.Account{Id: theKey}, Payee: &pb.Account{Id: "b"}},
		{Account: &pb.Account{Id: "b"}, Payee: &pb.Account{Id: theKey}},
	} {
		_, err = client.Transfer(within(t), held)
		wantCode(t, err, codes.Aborted)
	}
	_, err = client.Transfer(within(t), transferOf("without a payee"))
	wantCode(t, err, codes.InvalidArgument)
	if !strings.Contains(err.Error(), `the field "payee.id"`) {
		t.Errorf("the refusal %q does not name the field", err)
	}
	_, err = deposit(within(t), client, 1)
	wantCode(t, err, codes.Aborted)
	_, err = client.Balance(within(t), &pb.BalanceRequest{Account: &pb.Account{Id: theKey}})
	wantCode(t, err, codes.OK)
	_, err = client.PlaceOrder(within(t), &pb.PlaceOrderRequest{Item: theKey})
	wantCode(t, err, codes.Unimplemented)
}

// A rule of several parts is core.Join of them, and the name is that of core.Named.
func TestAnnotatedKeyIsThatOfCode(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { name: "account" key { source: "tenant" } key { metadata: "x-account" } key { literal: "l" } }`,
	})
	rules := grpclock.Annotated(a.descs(), grpclock.Source("tenant", grpclock.Literal("acme")))
	var key string
	client := serveAnnotated(t, &bank{transfer: func(ctx context.Context, _ *pb.TransferRequest) error {
		lease, _ := grpclock.FromContext(ctx)
		key = lease.Key()
		return nil
	}}, []annotatedBank{a}, rules.ServerOptions(locks)...)[0]
	_, err := client.Transfer(metadata.AppendToOutgoingContext(within(t), "x-account", "42"), transferOf(""))
	if wantCode(t, err, codes.OK); key != "account:4:acme2:421:l" {
		t.Errorf("the key is %q", key)
	}
}

// A stream takes no lock before its first message if one of its keys reads the message, whatever
// the key function makes of a stream that has none yet.
func TestAnnotatedStreamWaitsForItsFirstMessage(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	a := annotate(t, "", map[string]string{"Deposit": `lock { key { literal: "l" } } lock { key { source: "account" } }`})
	rules := grpclock.Annotated(a.descs(), grpclock.Source("account", func(c *grpclock.Call) (string, error) {
		key, err := accountOf(c)
		if err != nil {
			return "none", nil //nolint:nilerr // the mistake that the test is about
		}
		return key.Raw(), nil
	}))
	var keys []string
	client := serveAnnotated(t, &bank{deposit: func(s depositServer) error {
		if _, err := sum(s); err != nil {
			return err
		}
		for _, lease := range grpclock.Leases(s.Context()) {
			keys = append(keys, lease.Key())
		}
		return s.SendAndClose(&pb.BalanceReply{})
	}}, []annotatedBank{a}, rules.ServerOptions(locks)...)[0]
	_, err := deposit(within(t), client, 1)
	wantCode(t, err, codes.OK)
	if want := []string{"l", theKey}; !slices.Equal(keys, want) {
		t.Errorf("the handler holds %q, want %q", keys, want)
	}
}

// The wait and the TTL of a method override those of its service, which override the options of
// the interceptor. Two files have two sets of defaults.
func TestSettingsOfAMethodOverrideThoseOfItsService(t *testing.T) {
	t.Parallel()
	var waiting atomic.Int32
	locks, rdb := adaptertest.Locker(t, core.WithObserver(func(e core.Event) {
		if e.Kind == core.Waiting {
			waiting.Add(1)
		}
	}))
	lock := func(settings string) string { return `lock { key { field: "account.id" } ` + settings + ` }` }
	with := annotate(t, `wait { seconds: 60 } ttl { seconds: 40 }`, map[string]string{
		"Transfer": lock(`ttl { seconds: 80 }`), "Settle": lock(`wait {}`), "Deposit": lock(``),
	})
	without := annotate(t, ``, map[string]string{
		"Transfer": lock(``), "Settle": lock(`wait { seconds: 60 }`), "Deposit": lock(`wait { seconds: 60 }`),
	})
	rules := grpclock.Annotated([]*grpc.ServiceDesc{with.desc, without.desc})
	var ttls []time.Duration
	banks := serveAnnotated(t, &bank{
		transfer: func(ctx context.Context, m *pb.TransferRequest) error {
			left, err := rdb.PTTL(ctx, "reqlock:"+m.GetAccount().GetId()).Result()
			if m.GetAccount().GetId() != theKey {
				ttls = append(ttls, left.Round(10*time.Second))
			}
			return err
		},
		deposit: func(s depositServer) error { _, err := sum(s); return err },
	}, []annotatedBank{with, without}, rules.ServerOptions(locks, core.WithTTL(20*time.Second))...)
	for _, client := range banks {
		_, err := client.Transfer(within(t), transferOf("free"))
		wantCode(t, err, codes.OK)
	}
	if want := []time.Duration{80 * time.Second, 20 * time.Second}; !slices.Equal(ttls, want) {
		t.Errorf("the TTLs are %v, want %v", ttls, want)
	}
	adaptertest.Hold(t, rdb)
	for name, call := range map[string]func() error{
		"of the method, none": func() error { _, err := banks[0].Settle(within(t), transferOf(theKey)); return err },
		"of the interceptor":  func() error { _, err := banks[1].Transfer(within(t), transferOf(theKey)); return err },
	} {
		if got := reasonOf(call()); got != "BUSY" {
			t.Errorf("%s: %s, want BUSY", name, got)
		}
	}
	var calls sync.WaitGroup
	for name, call := range map[string]func() error{
		"of the service":            func() error { _, err := banks[0].Transfer(within(t), transferOf(theKey)); return err },
		"of the service, a stream":  func() error { _, err := deposit(within(t), banks[0], 1); return err },
		"of the method":             func() error { _, err := banks[1].Settle(within(t), transferOf(theKey)); return err },
		"of the method of a stream": func() error { _, err := deposit(within(t), banks[1], 1); return err },
	} {
		calls.Go(func() {
			if err := call(); reasonOf(err) != "" {
				t.Errorf("%s: %v, want its turn", name, err)
			}
		})
	}
	suite.Eventually(t, "four calls wait", func() bool { return waiting.Load() == 4 })
	adaptertest.Free(t, rdb)
	calls.Wait()
}

// The table has each rule, also of methods that the code locks.
func TestAllRulesAreListed(t *testing.T) {
	t.Parallel()
	a := annotate(t, `wait { seconds: 1 }`, map[string]string{
		"Transfer": `lock { name: "account" key { field: "account.id" } } idempotent { key { metadata: "idempotency-key" } optional: true }`,
		"Balance":  `unlocked: true`,
	})
	inCode := grpclock.ByMethod(map[string]grpclock.KeyFunc{a.method("Settle"): literal, a.method("Deposit"): literal})
	rules := grpclock.Annotated(a.descs(), grpclock.InCode(inCode))
	want := []string{
		a.method("Balance") + `: unlocked`,
		a.method("Transfer") + `: lock account: field "account.id": wait 1s`,
		a.method("Transfer") + `: idempotent: metadata "idempotency-key": optional, wait 1s`,
		a.method("Settle") + `: in code`,
		a.method("PlaceOrder") + `: undeclared`,
		a.method("Watch") + `: undeclared`,
		a.method("Deposit") + `: in code`,
		a.method("Batch") + `: undeclared`,
	}
	if got := all(rules); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got, want := rules.Undeclared(), []string{a.method("PlaceOrder"), a.method("Watch"), a.method("Batch")}; !slices.Equal(got, want) {
		t.Errorf("undeclared are %q", got)
	}
	for range rules.All() {
		break // the table may be read in part
	}
}

// A service without any annotation is no mistake, but all its methods are undeclared.
func TestServiceWithoutAnnotationsIsUndeclared(t *testing.T) {
	t.Parallel()
	rules := grpclock.Annotated([]*grpc.ServiceDesc{&healthpb.Health_ServiceDesc})
	if got := rules.Undeclared(); !slices.Contains(got, healthpb.Health_Check_FullMethodName) || len(got) != len(all(rules)) {
		t.Errorf("undeclared are %q of %q", got, all(rules))
	}
}

// AnnotatedErr returns all mistakes at once, those of the program too. Annotated panics with them.
func TestMistakesOfTheProgramAreNamed(t *testing.T) {
	t.Parallel()
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { key { literal: "l" } } lock { name: "account" key { source: "deposit" } key { field: "cents" } }`,
		"Settle":   `lock { key { source: "ada" } }`,
	})
	at := "reqlock: " + a.ParentFile().Path() + ": " + string(a.FullName())
	wrong := grpclock.Source("deposit", core.First(grpclock.Metadata("x"), grpclock.Field[*pb.DepositRequest]("account.id")))
	ada := grpclock.Source("ada", func(*grpclock.Call) (string, error) { return "ada", nil })
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
			at + `.Transfer: lock 2: key: source "deposit": its key function reads a *bankpb.DepositRequest, and the message of the method is a reqlock.bank.v1.TransferRequest`,
		}},
		"in code, too": {
			a.descs(), []grpclock.RuleOption{ada, grpclock.Source("deposit", literal), grpclock.InCode(core.Named("account", grpclock.ByMethod(map[string]grpclock.KeyFunc{
				a.method("Settle"): literal,
			})))}, []string{at + `.Settle: a ByMethod of the program locks it, too: keep one of them`},
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
		"Source needs a name":                        func() { grpclock.Source("", literal) },
		"Source: the key function of \"a\" is nil":   func() { grpclock.Source[string]("a", nil) },
		"InCode needs a key function":                func() { grpclock.InCode(nil) },
		"InCode needs the key function of a ByMetho": func() { grpclock.InCode(literal) },
		"Annotated: an option is empty":              func() { grpclock.Annotated(a.descs(), grpclock.RuleOption{}) },
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
		"Rules.Unary: Also":               func() { rules.Unary(locks, grpclock.Also(literal)) },
		"Rules.Stream: Also":              func() { rules.Stream(locks, grpclock.Also(literal)) },
		"Rules.Idempotent: WithOptional":  func() { rules.Idempotent(locks, grpclock.WithOptionalKey()) },
		"WithoutFingerprint":              func() { rules.Unary(locks, grpclock.WithoutFingerprint()) },
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
		more func(grpclock.KeyFunc) []grpc.ServerOption
		want []string
	}{
		"none": {func(grpclock.KeyFunc) []grpc.ServerOption { return nil }, []string{"Deposit", "Settle"}},
		"both": {func(key grpclock.KeyFunc) []grpc.ServerOption {
			return grpclock.ServerOptions(locks, core.Named("account", key))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := annotate(t, "", map[string]string{"Transfer": `lock { key { field: "account.id" } }`})
			inCode := grpclock.ByMethod(map[string]grpclock.KeyFunc{a.method("Settle"): literal, a.method("Deposit"): literal})
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
