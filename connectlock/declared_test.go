package connectlock_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/annotatedtest"
)

// annotatedBanks counts the annotated copies of the bank, which need different names.
var annotatedBanks atomic.Int64

// annotated returns a copy of the bank with these rules of the service and its methods.
func annotated(tb testing.TB, b *bank, rules string, methods map[string]string) *bank {
	tb.Helper()
	name := fmt.Sprintf("copy%d", annotatedBanks.Add(1))
	b.service = annotatedtest.Service{Of: bankService(), File: name + "/bank.proto", Package: name, Rules: rules, Methods: methods}.Register(tb)
	return b
}

// method returns the full name of a method.
func (b *bank) method(name string) string { return fmt.Sprintf("/%s/%s", b.service.FullName(), name) }

// serveAnnotated serves an annotated bank, and returns a client of it.
func serveAnnotated(t *testing.T, b *bank, opts ...connect.HandlerOption) client {
	t.Helper()
	served := b.handler(opts...)
	return listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.Replace(r.URL.Path, "reqlock.bank.v1.Bank", string(b.service.FullName()), 1)
		served.ServeHTTP(w, r)
	}))(connect.WithClientOptions())
}

// The calls of each method run by its rules: under its locks, once for its key, or as they are. Streams
// are locked, too.
func TestCallsRunByTheirRules(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	var mu sync.Mutex
	var names []string
	add := func(leases ...*core.Lease) {
		mu.Lock()
		defer mu.Unlock()
		for _, lease := range leases {
			names = append(names, lease.Key())
		}
	}
	b := annotated(t, &bank{
		transfer: func(ctx context.Context, _ transferRequest) (transferReply, error) {
			add(core.LeasesFromContext(ctx)...)
			return connect.NewResponse(&pb.TransferReply{Cents: runs.Add(1)}), nil
		},
		batch: func(ctx context.Context, s batchStream) error {
			if _, err := s.Receive(); err != nil {
				return err
			}
			add(core.LeasesFromContext(ctx)...)
			return s.Send(&pb.TransferReply{})
		},
	}, "", map[string]string{
		"Transfer": `lock { name: "account" key { field: "account.id" } } lock { name: "user" key { source: "user" } }
			idempotent { key { source: "user" } key { metadata: "Idempotency-Key" } optional: true }`,
		"Batch": `lock { name: "account" key { field: "account.id" } }`,
	})
	locks, _ := adaptertest.Locker(t)
	c := serveAnnotated(t, b, connectlock.Declared(locks, connectlock.Source("user", connectlock.Header("x-user"))))
	for i, step := range []struct {
		header []string
		run    int64
		code   connect.Code
	}{
		{[]string{"X-User", "ada", "Idempotency-Key", "k"}, 1, 0},
		{[]string{"X-User", "ada", "Idempotency-Key", `"k"`}, 1, 0},
		{[]string{"X-User", "ada"}, 2, 0},
		{[]string{"X-User", "ada"}, 3, 0},
		{[]string{"Idempotency-Key", "k"}, 0, connect.CodeInvalidArgument},
		{nil, 0, connect.CodeInvalidArgument},
	} {
		reply, err := c.transfer.CallUnary(within(t), transferOf("42", step.header...))
		if wantCode(t, err, step.code); err == nil && reply.Msg.GetCents() != step.run {
			t.Errorf("step %d: the answer is that of run %d, want %d", i, reply.Msg.GetCents(), step.run)
		}
	}
	_, err := batchOf(within(t), c, "43")
	wantCode(t, err, 0)
	_, err = c.balance.CallUnary(within(t), connect.NewRequest(&pb.BalanceRequest{})) // declares nothing
	wantCode(t, err, 0)
	mu.Lock()
	defer mu.Unlock()
	if got := fmt.Sprint(names); got != "[account:42 user:ada account:42 user:ada account:42 user:ada account:43]" {
		t.Errorf("locked %s", got)
	}
}

// The wait of a rule has precedence over that of the Locker, and WithOptionalKey of the Locker has no
// effect: the rule says whether its key is optional.
func TestRulesOverrideTheLocker(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t, core.WithWait(time.Minute))
	adaptertest.Hold(t, rdb)
	b := annotated(t, &bank{}, `wait { seconds: 2 }`, map[string]string{
		"Transfer": `idempotent { key { metadata: "x-id" } }`,
		"Batch":    `lock { key { literal: "` + theKey + `" } }`,
	})
	c := serveAnnotated(t, b, connectlock.Declared(locks.With(core.WithOptionalKey("x-id"))))
	_, err := c.transfer.CallUnary(within(t), transferOf("a"))
	wantCode(t, err, connect.CodeInvalidArgument)
	_, err = batchOf(within(t), c, "a")
	if wantCode(t, err, connect.CodeAborted); reasonOf(err) != "WAIT_TIMEOUT" {
		t.Errorf("%v", err)
	}
}

// The caller of a lease of a rule is the code that called Declared.
func TestCallerIsTheCodeThatCalledDeclared(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t, core.WithCaller(true))
	b := annotated(t, &bank{transfer: func(ctx context.Context, _ transferRequest) (transferReply, error) {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := locks.Close(ended); err == nil || !strings.Contains(err.Error(), "connectlock_test.TestCallerIsTheCodeThatCalledDeclared") {
			t.Errorf("close: %v", err)
		}
		return connect.NewResponse(&pb.TransferReply{}), nil
	}}, "", map[string]string{"Transfer": `lock { key { literal: "l" } }`})
	_, err := serveAnnotated(t, b, connectlock.Declared(locks.Locker)).transfer.CallUnary(within(t), transferOf("42"))
	wantCode(t, err, 0)
}

// Mistakes are found when the handler is made, and name the rule.
func TestMistakesInRules(t *testing.T) {
	t.Parallel()
	locks := adaptertest.UnusedLocker(t)
	rules := func(service string, methods map[string]string) func(*core.Locker, ...connectlock.RuleOption) func() {
		b := annotated(t, &bank{}, service, methods)
		return func(l *core.Locker, opts ...connectlock.RuleOption) func() {
			return func() { b.handler(connectlock.Declared(l, opts...)) }
		}
	}
	ofTransfer := func(rule string) func(*core.Locker, ...connectlock.RuleOption) func() {
		return rules("", map[string]string{"Transfer": rule})
	}
	inCode := annotated(t, &bank{}, `must_declare: true`, map[string]string{
		"Transfer": `unlocked: true`, "Settle": `unlocked: true`, "PlaceOrder": `unlocked: true`, "Watch": `unlocked: true`,
		"Deposit": `unlocked: true`, "Batch": `unlocked: true`,
	})
	byMethod := connectlock.ByMethod(map[string]connectlock.Key{inCode.method("Balance"): literal})
	for want, register := range map[string]func(){
		`Transfer: lock 1: key: field "acount": reqlock.bank.v1.TransferRequest has no field "acount"`: ofTransfer(`lock { key { field: "acount" } }`)(locks),
		`Transfer: lock 1: key: source "user": there is no such source`:                                ofTransfer(`lock { key { source: "user" } }`)(locks),
		`Transfer: lock 1: key: source "user": its key reads a *bankpb.DepositRequest`: ofTransfer(`lock { key { source: "user" } }`)(locks,
			connectlock.Source("user", connectlock.Field[*pb.DepositRequest]("account.id"))),
		`the source "user" is given twice`: ofTransfer(``)(locks, connectlock.Source("user", literal), connectlock.Source("user", literal)),
		`an option is empty`:               ofTransfer(``)(locks, connectlock.RuleOption{}),
		`Declared needs a locker`:          ofTransfer(``)(nil),
		`Declared: WithPermits and WithShared: write permits or shared in the rules`: ofTransfer(`lock { key { literal: "l" } }`)(locks.With(core.WithShared(true))),
		`Transfer: lock 1: WithPermits`:                                              ofTransfer(`lock { key { literal: "l" } permits: 3 }`)(locks.With(core.WithFencing(true))),
		`IdempotentInterceptor needs a locker without WithFailOpen`:                  ofTransfer(`idempotent { key { metadata: "k" } }`)(locks.With(core.WithFailOpen(true))),
		`Balance: it declares nothing`:                                               rules(`must_declare: true`, nil)(locks),
		`InCode names ` + inCode.method("Balance") + `, which runs without a lock`: func() {
			inCode.handler(connectlock.Declared(locks, connectlock.InCode(byMethod)))
		},
		`has no schema: write connect.WithSchema`: func() {
			connect.NewBidiStreamHandler("/a.B/C", (&bank{}).batch, connectlock.Declared(locks))
		},
		`Source needs a name`:                    func() { connectlock.Source("", literal) },
		`Source: the key of "a" is the zero Key`: func() { connectlock.Source("a", connectlock.Key{}) },
		`InCode needs a key`:                     func() { connectlock.InCode(connectlock.Key{}) },
		`InCode needs the key of a ByMethod`:     func() { connectlock.InCode(literal) },
	} {
		adaptertest.WantPanic(t, register, want)
	}
	connectlock.Interceptor(locks, byMethod)
	inCode.handler(connectlock.Declared(locks, connectlock.InCode(byMethod)))
}
