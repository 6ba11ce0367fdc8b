package protolock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/protolock"
)

// An idempotent call runs once for its key. If the key is optional, a call without any of the
// parts that its client chooses is an ordinary call, and one with a part of them is refused.
func TestAnnotatedIdempotentCalls(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	a := annotate(t, "", map[string]string{
		"Transfer": `idempotent { key { source: "user" } key { field: "payee.id" } optional: true }`,
		"Settle":   `idempotent { key { source: "user" } key { metadata: "idempotency-key" } key { field: "payee.id" } optional: true }`,
	})
	rules := protolock.Must(protolock.New(a.descs(), protolock.Source("user", grpclock.Metadata("x-user"))))
	var runs atomic.Int64
	b := &bank{transfer: func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error) {
		return &pb.TransferReply{Cents: runs.Add(1)}, nil
	}}
	client := serveAnnotated(t, b, []annotatedBank{a}, rules.ServerOptions(locks)...)[0]
	as := func(user string, more ...string) context.Context {
		return metadata.AppendToOutgoingContext(within(t), append(more, "x-user", user)...)
	}
	call := func(id string) *pb.TransferRequest { return &pb.TransferRequest{Payee: &pb.Account{Id: id}} }
	for i, want := range []struct {
		ctx  context.Context
		id   string
		run  int64
		code codes.Code
	}{
		{as("ada"), "1", 1, codes.OK},
		{as("ada"), "1", 1, codes.OK},
		{as("bob"), "1", 2, codes.OK},
		{as("ada"), "", 3, codes.OK},
		{as("ada"), "", 4, codes.OK},
		{within(t), "1", 0, codes.InvalidArgument}, // no user
		{as(""), "1", 0, codes.InvalidArgument},
		{as("ada"), "1", 1, codes.OK},
	} {
		reply, err := client.Transfer(want.ctx, call(want.id))
		if wantCode(t, err, want.code); reply.GetCents() != want.run {
			t.Errorf("call %d: the answer is that of run %d, want %d", i, reply.GetCents(), want.run)
		}
	}
	// Settle has two parts of the client.
	for i, want := range []struct {
		ctx  context.Context
		id   string
		code codes.Code
	}{
		{as("ada"), "", codes.Unimplemented},
		{as("ada", "idempotency-key", "k"), "", codes.InvalidArgument},
		{as("ada", "idempotency-key", ""), "", codes.InvalidArgument},
		{as("ada"), "1", codes.InvalidArgument},
		{as("ada", "idempotency-key", `"k"`), "1", codes.Unimplemented},
	} {
		_, err := client.Settle(want.ctx, call(want.id))
		if wantCode(t, err, want.code); t.Failed() {
			t.Fatalf("call %d of Settle", i)
		}
	}
}

// The metadata idempotency-key is one key in its two forms, as with IdempotencyKey.
func TestAnnotatedIdempotencyKeyHasTwoForms(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	a := annotate(t, "", map[string]string{"Transfer": `idempotent { key { metadata: "Idempotency-Key" } }`})
	var runs atomic.Int32
	b := &bank{transfer: func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error) {
		runs.Add(1)
		return &pb.TransferReply{}, nil
	}}
	client := serveAnnotated(t, b, []annotatedBank{a}, protolock.Must(protolock.New(a.descs())).ServerOptions(locks)...)[0]
	for _, key := range []string{"k", `"k"`} {
		_, err := client.Transfer(metadata.AppendToOutgoingContext(within(t), "idempotency-key", key), transferOf("42"))
		wantCode(t, err, codes.OK)
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
	_, err := client.Transfer(within(t), transferOf("42"))
	wantCode(t, err, codes.InvalidArgument)
}

// The retention and the name of a rule have precedence over those of the interceptor, and so have its
// other settings.
func TestAnnotatedRetentionOverridesTheOption(t *testing.T) {
	t.Parallel()
	name := ""
	locks, rdb := adaptertest.Locker(t, core.WithObserver(func(e core.Event) {
		if e.Kind == core.Committed {
			name = e.Name
		}
	}))
	a := annotate(t, "", map[string]string{"Transfer": `idempotent { name: "transfers" key { field: "account.id" } retention { seconds: 600 } }`})
	rules := protolock.Must(protolock.New(a.descs()))
	client := serveAnnotated(t, &bank{}, []annotatedBank{a}, grpc.ChainUnaryInterceptor(
		rules.IdempotentUnaryServerInterceptor(locks, core.WithRetention(time.Hour), core.WithName("calls"))))[0]
	_, err := client.Transfer(within(t), transferOf("42"))
	wantCode(t, err, codes.OK)
	if name != "transfers" {
		t.Errorf("the events have the name %q", name)
	}
	records, err := rdb.Keys(t.Context(), "*").Result()
	if err != nil || len(records) != 1 {
		t.Fatalf("the keys are %q, %v", records, err)
	}
	if left := rdb.PTTL(t.Context(), records[0]).Val(); left.Round(5*time.Minute) != 10*time.Minute {
		t.Errorf("the record lasts %v, want 10 minutes", left)
	}
}

// The rule says whether its key is optional, and WithOptionalKey of the Locker does not.
func TestOptionalKeyOfTheLockerIsIgnored(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	a := annotate(t, "", map[string]string{"Transfer": `idempotent { key { metadata: "x-id" } }`})
	rules := protolock.Must(protolock.New(a.descs()))
	client := serveAnnotated(t, &bank{}, []annotatedBank{a}, rules.ServerOptions(locks.With(core.WithOptionalKey("x-id")))...)[0]
	_, err := client.Transfer(within(t), transferOf("42"))
	wantCode(t, err, codes.InvalidArgument)
}
