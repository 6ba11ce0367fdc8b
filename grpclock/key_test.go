package grpclock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
)

// checkKey compares a key that is read from a call with what a test expects.
func checkKey(t *testing.T, key grpclock.Key, c *grpclock.Call, want string, wantErr error) {
	t.Helper()
	read, err := key.Read(c)
	if got := read.Raw(); got != want || !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
		t.Errorf("got %q, %v; want %q, %v", got, err, want, wantErr)
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		md      metadata.MD
		want    string
		wantErr error
	}{
		"one":               {metadata.Pairs("x-account", "42"), "42", nil},
		"upper case":        {metadata.MD{"X-Account": {"42"}}, "42", nil},
		"none":              {metadata.MD{}, "", core.ErrNoKey},
		"no metadata":       {nil, "", core.ErrNoKey},
		"empty":             {metadata.Pairs("x-account", ""), "", core.ErrNoKey},
		"two":               {metadata.Pairs("x-account", "42", "x-account", "43"), "", core.ErrInvalidKey},
		"control character": {metadata.Pairs("x-account", "4\n2"), "", core.ErrInvalidKey},
		"too long":          {metadata.Pairs("x-account", strings.Repeat("x", 513)), "", core.ErrInvalidKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			if test.md != nil {
				ctx = metadata.NewIncomingContext(ctx, test.md)
			}
			checkKey(t, grpclock.Metadata("X-Account"), grpclock.NewCall(ctx, "", nil), test.want, test.wantErr)
		})
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	const name = "idempotency-key"
	for title, test := range map[string]struct {
		md      metadata.MD
		want    string
		wantErr error
	}{
		"bare":        {metadata.Pairs(name, "k1"), "k1", nil},
		"quoted":      {metadata.Pairs(name, `"k1"`), "k1", nil},
		"upper case":  {metadata.MD{"Idempotency-Key": {"k1"}}, "k1", nil},
		"none":        {metadata.MD{}, "", core.ErrNoKey},
		"no metadata": {nil, "", core.ErrNoKey},
		"empty":       {metadata.Pairs(name, ""), "", core.ErrNoKey},
		"two":         {metadata.Pairs(name, "k1", name, "k1"), "", core.ErrInvalidKey},
		"a list":      {metadata.Pairs(name, "k1, k1"), "", core.ErrInvalidKey},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			if test.md != nil {
				ctx = metadata.NewIncomingContext(ctx, test.md)
			}
			checkKey(t, grpclock.IdempotencyKey(), grpclock.NewCall(ctx, "", nil), test.want, test.wantErr)
		})
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	account := grpclock.Message(func(m *pb.TransferRequest) string { return m.GetAccount().GetId() })
	for name, test := range map[string]struct {
		key     grpclock.Key
		message any
		want    string
		wantErr error
	}{
		"set":               {account, transferOf("42"), "42", nil},
		"not set":           {account, &pb.TransferRequest{}, "", core.ErrNoKey},
		"nil pointer":       {account, (*pb.TransferRequest)(nil), "", core.ErrNoKey},
		"no message":        {account, nil, "", core.ErrNoKey},
		"control character": {account, transferOf("4\n2"), "", core.ErrInvalidKey},
		"getter":            {grpclock.Message((*pb.PlaceOrderRequest).GetItem), &pb.PlaceOrderRequest{Item: "a"}, "a", nil},
		"interface":         {accountOf, &pb.DepositRequest{Account: &pb.Account{Id: "42"}}, "42", nil},
		"no protobuf":       {grpclock.Message(func(m string) string { return m }), "42", "42", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkKey(t, test.key, grpclock.NewCall(t.Context(), "", test.message), test.want, test.wantErr)
		})
	}
}

// A message of another type is a mistake of the server's, not of the client's,
// and never a call without a lock.
func TestMessageOfAnotherType(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]grpclock.Key{
		"Message":           grpclock.Message((*pb.PlaceOrderRequest).GetItem),
		"interface":         grpclock.Message(func(m interface{ GetItem() string }) string { return m.GetItem() }),
		"Field":             grpclock.Field[*pb.PlaceOrderRequest]("item"),
		"Field or metadata": core.First(grpclock.Field[*pb.PlaceOrderRequest]("item"), grpclock.Literal("a")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := key.Read(grpclock.NewCall(t.Context(), pb.Bank_Transfer_FullMethodName, transferOf(theKey)))
			if err == nil || errors.Is(err, core.ErrNoKey) || errors.Is(err, core.ErrSkip) {
				t.Fatalf("%v", err)
			}
			text := err.Error()
			if !strings.Contains(text, "*bankpb.TransferRequest") || !strings.Contains(text, "Bank/Transfer") || strings.Contains(text, theKey) {
				t.Errorf("text %q", text)
			}
		})
	}
}

func TestContextValue(t *testing.T) {
	t.Parallel()
	type user struct{ id int }
	type key struct{}
	name := func(u *user) string { return strings.Repeat("u", u.id) }
	for title, test := range map[string]struct {
		key     grpclock.Key
		value   any
		want    string
		wantErr error
	}{
		"integer":             {grpclock.ContextValue(key{}), 42, "42", nil},
		"missing":             {grpclock.ContextValue(1), 42, "", core.ErrNoKey},
		"another type":        {grpclock.ContextValue(key{}), 4.2, "", core.ErrInvalidKey},
		"as":                  {grpclock.ContextValueAs(key{}, name), &user{3}, "uuu", nil},
		"as, missing":         {grpclock.ContextValueAs(1, name), &user{3}, "", core.ErrNoKey},
		"as, of another type": {grpclock.ContextValueAs(key{}, name), user{3}, "", core.ErrInvalidKey},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			ctx := context.WithValue(t.Context(), key{}, test.value)
			checkKey(t, test.key, grpclock.NewCall(ctx, "", nil), test.want, test.wantErr)
		})
	}
}

func TestMethodAndLiteral(t *testing.T) {
	t.Parallel()
	c := grpclock.NewCall(t.Context(), pb.Bank_Transfer_FullMethodName, wrapperspb.String("m"))
	checkKey(t, grpclock.Method(), c, "/reqlock.bank.v1.Bank/Transfer", nil)
	checkKey(t, grpclock.Literal("a"), c, "a", nil)
	checkKey(t, grpclock.Method(), grpclock.NewCall(t.Context(), "/a\n/b", nil), "", core.ErrInvalidKey)
}
