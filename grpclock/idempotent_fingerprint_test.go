package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
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

// The error of a fingerprint names the option that mends it, and begins once with "reqlock:". It is a
// warning, too.
func TestErrorOfFingerprintNamesItsOption(t *testing.T) {
	t.Parallel()
	broken := core.WithFingerprint(func(*grpclock.Call) ([]byte, error) { return nil, errors.New("broken") })
	wrong := grpclock.Message(func(m fmt.Stringer) string { return m.String() })
	for want, test := range map[string]struct {
		key     grpclock.Key
		options []core.Option
		warned  string
	}{
		"reqlock: key function: WithFingerprint(): broken":                                                     {literal, []core.Option{broken}, "WithFingerprint() refuses requests with key_error, because it fails"},
		"reqlock: key function: the message of /a.B/C is a int and no proto.Message: it needs WithFingerprint": {literal, nil, "the fingerprint refuses requests, because the message of /a.B/C is a int and no proto.Message: it needs"},
		"reqlock: key function: Message(func(fmt.Stringer) string): the message of /a.B/C is a int, not a fmt.Stringer: choose the methods by ByMethod": {
			wrong, nil, "Message(func(fmt.Stringer) string) refuses requests, because the message of /a.B/C is a int, not a fmt.Stringer: choose",
		},
	} {
		var mu sync.Mutex
		var texts, warned []string
		locks := locktest.New(t, core.WithObserver(func(e core.Event) {
			mu.Lock()
			defer mu.Unlock()
			switch e.Kind {
			case core.Refused:
				texts = append(texts, e.Err.Error())
			case core.Warned:
				warned = append(warned, e.Err.Error())
			default:
			}
		}))
		interceptor := grpclock.IdempotentUnaryServerInterceptor(locks.Locker, test.key, test.options...)
		_, err := interceptor(t.Context(), 7, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}, func(context.Context, any) (any, error) {
			t.Error("the handler ran")
			return nil, nil
		})
		mu.Lock()
		if err == nil || !slices.Equal(texts, []string{want}) {
			t.Errorf("%v, events %q, want %q", err, texts, want)
		}
		if len(warned) != 1 || !strings.Contains(warned[0], test.warned) || strings.Contains(warned[0], "broken") {
			t.Errorf("warned %q, want %q", warned, test.warned)
		}
		mu.Unlock()
	}
}
