package protolock_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/protolock"
)

// all returns all lines of a table.
func all(r *protolock.Rules) (lines []string) {
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
	tenant := protolock.Source("tenant", grpclock.Literal("acme"))
	rules := protolock.Must(protolock.New(a.descs(), tenant))
	var keys [][]string
	b := &bank{
		transfer: func(ctx context.Context, _ *pb.TransferRequest) (*pb.TransferReply, error) {
			var held []string
			for _, lease := range core.LeasesFromContext(ctx) {
				held = append(held, lease.Key())
			}
			keys = append(keys, held)
			return &pb.TransferReply{}, nil
		},
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
	err = deposit(within(t), client)
	wantCode(t, err, codes.Aborted)
	_, err = client.Balance(within(t), &pb.BalanceRequest{Account: &pb.Account{Id: theKey}})
	wantCode(t, err, codes.OK)
	_, err = client.PlaceOrder(within(t), &pb.PlaceOrderRequest{Item: theKey})
	wantCode(t, err, codes.Unimplemented)
}

// A rule of several parts is core.Join of them, and the name is that of Named.
func TestAnnotatedKeyIsThatOfCode(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { name: "account" key { source: "tenant" } key { metadata: "x-account" } key { literal: "l" } }`,
	})
	rules := protolock.Must(protolock.New(a.descs(), protolock.Source("tenant", grpclock.Literal("acme"))))
	var key string
	client := serveAnnotated(t, &bank{transfer: func(ctx context.Context, _ *pb.TransferRequest) (*pb.TransferReply, error) {
		lease, _ := core.LeaseFromContext(ctx)
		key = lease.Key()
		return &pb.TransferReply{}, nil
	}}, []annotatedBank{a}, rules.ServerOptions(locks)...)[0]
	_, err := client.Transfer(metadata.AppendToOutgoingContext(within(t), "x-account", "42"), transferOf(""))
	if wantCode(t, err, codes.OK); key != "account:4:acme2:421:l" {
		t.Errorf("the key is %q", key)
	}
}

// A stream takes no lock before its first message if one of its keys reads the message, whatever
// the key makes of a stream that has none yet.
func TestAnnotatedStreamWaitsForItsFirstMessage(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	a := annotate(t, "", map[string]string{"Deposit": `lock { key { literal: "l" } } lock { key { source: "account" } }`})
	rules := protolock.Must(protolock.New(a.descs(), protolock.Source("account", core.KeyOf(func(c *grpclock.Call) (string, error) {
		key, err := accountOf.Read(c)
		if err != nil {
			return "none", nil //nolint:nilerr // the mistake that the test is about
		}
		return key.Raw(), nil
	}))))
	var keys []string
	client := serveAnnotated(t, &bank{deposit: func(s depositServer) error {
		for _, lease := range core.LeasesFromContext(s.Context()) {
			keys = append(keys, lease.Key())
		}
		return s.SendAndClose(&pb.BalanceReply{})
	}}, []annotatedBank{a}, rules.ServerOptions(locks)...)[0]
	err := deposit(within(t), client)
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
	rules := protolock.Must(protolock.New([]*grpc.ServiceDesc{with.desc, without.desc}))
	var ttls []time.Duration
	banks := serveAnnotated(t, &bank{
		transfer: func(ctx context.Context, m *pb.TransferRequest) (*pb.TransferReply, error) {
			left, err := rdb.PTTL(ctx, "reqlock:"+m.GetAccount().GetId()).Result()
			if m.GetAccount().GetId() != theKey {
				ttls = append(ttls, left.Round(10*time.Second))
			}
			return &pb.TransferReply{}, err
		},
	}, []annotatedBank{with, without}, rules.ServerOptions(locks, core.WithTTL(30*time.Second))...)
	for _, client := range banks {
		_, err := client.Transfer(within(t), transferOf("free"))
		wantCode(t, err, codes.OK)
	}
	if want := []time.Duration{80 * time.Second, 30 * time.Second}; !slices.Equal(ttls, want) {
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
		"of the service, a stream":  func() error { return deposit(within(t), banks[0]) },
		"of the method":             func() error { _, err := banks[1].Settle(within(t), transferOf(theKey)); return err },
		"of the method of a stream": func() error { return deposit(within(t), banks[1]) },
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
	inCode := grpclock.ByMethod(map[string]grpclock.Key{a.method("Settle"): literal, a.method("Deposit"): literal})
	rules := protolock.Must(protolock.New(a.descs(), protolock.InCode(inCode)))
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
	rules := protolock.Must(protolock.New([]*grpc.ServiceDesc{&healthpb.Health_ServiceDesc}))
	if got := rules.Undeclared(); !slices.Contains(got, healthpb.Health_Check_FullMethodName) || len(got) != len(all(rules)) {
		t.Errorf("undeclared are %q of %q", got, all(rules))
	}
}
