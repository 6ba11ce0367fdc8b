package connectlock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

type userKey struct{}

type user struct{ id int }

func (u *user) ID() string { return fmt.Sprint(u.id) }

func TestKeys(t *testing.T) {
	t.Parallel()
	type header = http.Header
	account := connectlock.Field[*pb.TransferRequest]("account.id")
	for name, test := range map[string]struct {
		key     connectlock.Key
		header  http.Header
		peer    string
		value   any
		message any
		want    string
		wantErr error
	}{
		"a header":              {key: connectlock.Header("x-account"), header: header{"X-Account": {"42"}}, want: "42"},
		"no header":             {key: connectlock.Header("x-account"), wantErr: core.ErrNoKey},
		"two headers":           {key: connectlock.Header("x-account"), header: header{"X-Account": {"42", "42"}}, wantErr: core.ErrInvalidKey},
		"an idempotency key":    {key: connectlock.IdempotencyKey(), header: header{"Idempotency-Key": {`"k1"`}}, want: "k1"},
		"a list of keys":        {key: connectlock.IdempotencyKey(), header: header{"Idempotency-Key": {"k1, k2"}}, wantErr: core.ErrInvalidKey},
		"a peer":                {key: connectlock.Peer(), peer: "192.0.2.1:4242", want: "192.0.2.1"},
		"a peer with IPv6":      {key: connectlock.Peer(), peer: "[2001:db8::1]:4242", want: "2001:db8::1"},
		"a peer without a port": {key: connectlock.Peer(), peer: "2001:db8::1", want: "2001:db8::1"},
		"a Unix socket":         {key: connectlock.Peer(), peer: "@", wantErr: core.ErrInvalidKey},
		"no peer":               {key: connectlock.Peer(), wantErr: core.ErrNoKey},
		"a value":               {key: connectlock.ContextValue(userKey{}), value: 42, want: "42"},
		"no value":              {key: connectlock.ContextValue(userKey{}), wantErr: core.ErrNoKey},
		"a value as":            {key: connectlock.ContextValueAs(userKey{}, (*user).ID), value: &user{7}, want: "7"},
		"a value as another":    {key: connectlock.ContextValueAs(userKey{}, (*user).ID), value: 7, wantErr: core.ErrInvalidKey},
		"the procedure":         {key: connectlock.Procedure(), want: pb.Bank_Transfer_FullMethodName},
		"a literal":             {key: connectlock.Literal("all"), want: "all"},
		"a field":               {key: account, message: transferOf("42").Msg, want: "42"},
		"no field":              {key: account, message: &pb.TransferRequest{}, wantErr: core.ErrNoKey},
		"no message":            {key: account, wantErr: core.ErrNoKey},
		"a message":             {key: connectlock.Message((*pb.PlaceOrderRequest).GetItem), message: &pb.PlaceOrderRequest{Item: "a"}, want: "a"},
	} {
		ctx := context.WithValue(t.Context(), userKey{}, test.value)
		read, err := test.key.Read(connectlock.NewCall(ctx, transferred, connect.Peer{Addr: test.peer}, test.header, test.message))
		if read.Raw() != test.want || !errors.Is(err, test.wantErr) || (err == nil) != (test.wantErr == nil) {
			t.Errorf("%s: %q, %v", name, read.Raw(), err)
		}
	}
	_, err := account.Read(connectlock.NewCall(t.Context(), transferred, connect.Peer{}, nil, &pb.PlaceOrderRequest{Item: theKey}))
	if err == nil || errors.Is(err, core.ErrNoKey) || !strings.Contains(err.Error(), "*bankpb.PlaceOrderRequest") || strings.Contains(err.Error(), theKey) {
		t.Errorf("another message: %v", err)
	}
}

// On a connection, a key gets the client's address and the protocol.
func TestCallOnAConnection(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	b := &bank{transfer: func(ctx context.Context, _ transferRequest) (transferReply, error) {
		lease, _ := core.LeaseFromContext(ctx)
		return connect.NewResponse(&pb.TransferReply{}), connect.NewError(connect.CodeNotFound, errors.New(lease.Key()))
	}}
	protocol := core.Getter(func(c *connectlock.Call) string { return c.Peer().Protocol })
	account := core.Getter(func(c *connectlock.Call) string { return c.Header().Get("X-Account") })
	clients := listen(t, b.handler(locked(connectlock.Interceptor(locks, core.Join(connectlock.Peer(), protocol, account)))))
	_, err := clients(connect.WithGRPC()).transfer.CallUnary(within(t), transferOf("a", "x-account", "42"))
	if want := "not_found: 9:127.0.0.14:grpc2:42"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Calls of a method that only reads run beside each other.
func TestReadsShareAKey(t *testing.T) {
	t.Parallel()
	for level, want := range map[connect.IdempotencyLevel]bool{
		connect.IdempotencyNoSideEffects: true, connect.IdempotencyIdempotent: false, connect.IdempotencyUnknown: false,
	} {
		call := connectlock.NewCall(t.Context(), connect.Spec{IdempotencyLevel: level}, connect.Peer{}, nil, nil)
		if got := connectlock.IsRead(call); got != want {
			t.Errorf("%v: %v", level, got)
		}
	}
}

// A call does not show what it contains.
func TestCallInALog(t *testing.T) {
	t.Parallel()
	c := connectlock.NewCall(t.Context(), transferred, connect.Peer{}, http.Header{"Authorization": {theKey}}, transferOf(theKey).Msg)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, c); got != "connectlock.Call("+pb.Bank_Transfer_FullMethodName+")" {
			t.Errorf("%s: %s", format, got)
		}
	}
}
