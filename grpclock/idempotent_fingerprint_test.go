package grpclock_test

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// withUnknown returns a request with a field that the program does not know.
func withUnknown(id string, field []byte) *pb.TransferRequest {
	m := transferOf(id)
	m.ProtoReflect().SetUnknown(field)
	return m
}

// Which two messages are copies of one call.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	ofID := core.WithFingerprint(func(c *grpclock.Call) ([]byte, error) {
		m, _ := c.Message().(*pb.TransferRequest)
		return []byte(m.GetAccount().GetId()), nil
	})
	other := &pb.TransferRequest{Account: &pb.Account{Id: "a"}, Cents: 2}
	many := func() proto.Message {
		fields := map[string]*structpb.Value{}
		for _, name := range "abcdefghijklmnopqrstuvwxyz" {
			fields[string(name)] = structpb.NewStringValue("")
		}
		return &structpb.Struct{Fields: fields}
	}
	for name, test := range map[string]struct {
		opts        []core.Option
		first, next any
		match       bool
	}{
		"the same":                         {nil, transferOf("a"), transferOf("a"), true},
		"nothing twice":                    {nil, &pb.TransferRequest{}, &pb.TransferRequest{}, true},
		"another one":                      {nil, transferOf("a"), transferOf("b"), false},
		"another one, of nothing":          {nil, transferOf("a"), &pb.TransferRequest{}, false},
		"the bytes of another type":        {nil, &pb.Account{}, &pb.BalanceReply{}, false},
		"a map":                            {nil, many(), many(), true},
		"the same unknown field":           {nil, withUnknown("a", unknownField), withUnknown("a", unknownField), true},
		"an unknown field more":            {nil, transferOf("a"), withUnknown("a", unknownField), false},
		"another one, own fingerprint":     {[]core.Option{ofID}, transferOf("a"), other, true},
		"another ID, own fingerprint":      {[]core.Option{ofID}, transferOf("a"), transferOf("b"), false},
		"another one, none":                {[]core.Option{core.WithoutFingerprint()}, transferOf("a"), transferOf("b"), true},
		"another one, the last one counts": {[]core.Option{ofID, core.WithoutFingerprint(), ofID}, transferOf("a"), transferOf("b"), false},
		"no proto.Message, none":           {[]core.Option{core.WithoutFingerprint()}, 1, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := adaptertest.Locker(t)
			interceptor := grpclock.IdempotentUnaryServerInterceptor(locks, literal, test.opts...)
			var runs atomic.Int32
			call := func(m any) error {
				_, err := interceptor(t.Context(), m, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
					func(context.Context, any) (any, error) {
						runs.Add(1)
						return &pb.TransferReply{}, nil
					})
				return err
			}
			wantCode(t, call(test.first), codes.OK)
			want := codes.FailedPrecondition
			if test.match {
				want = codes.OK
			}
			wantCode(t, call(test.next), want)
			wantCode(t, call(test.first), codes.OK) // and the first is what it was
			wantRuns(t, &runs, 1)
		})
	}
}

// A message that protobuf cannot write down needs a fingerprint of its own, and
// its call leaves nothing behind.
func TestMessagesWithoutFingerprint(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	interceptor := grpclock.IdempotentUnaryServerInterceptor(locks, literal)
	for name, m := range map[string]any{"nil": nil, "a number": 7, "no UTF-8": transferOf("\xff")} {
		_, err := interceptor(t.Context(), m, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}, nil)
		wantCode(t, err, codes.Internal)
		if reasonOf(err) != "KEY_ERROR" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names := rdb.Keys(t.Context(), "*"+adapter.Must(core.EndpointKey("", "/a.B/C", theKey))+"*").Val(); len(names) != 0 {
		t.Errorf("in Redis: %q", names)
	}
}
