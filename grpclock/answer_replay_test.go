package grpclock_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// unknownField is a field that no message of the bank has.
var unknownField = protowire.AppendString(protowire.AppendTag(nil, 77, protowire.BytesType), "from a newer build")

// refusedWithDetails is a status as services send it; one detail is of a type
// that the program does not have.
func refusedWithDetails() error {
	s := status.New(codes.FailedPrecondition, "no funds")
	s, err := s.WithDetails(
		&errdetails.PreconditionFailure{Violations: []*errdetails.PreconditionFailure_Violation{{Type: "FUNDS", Subject: "42"}}},
		durationpb.New(7),
	)
	if err != nil {
		return err
	}
	p := s.Proto()
	p.Details = append(p.Details, &anypb.Any{TypeUrl: "type.example.com/nobody.Knows", Value: []byte("\xff\x00")})
	return status.ErrorProto(p)
}

type replyFunc = func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error)

// Answers as handlers make them, all of which are stored.
var answers = map[string]struct {
	opts  []core.Option
	reply replyFunc
	check func(t *testing.T, r reply)
}{
	"a message": {reply: func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error) {
		return &pb.TransferReply{Cents: 42}, nil
	}, check: wantOK},
	"an empty message": {reply: func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error) {
		return &pb.TransferReply{}, nil
	}, check: wantOK},
	"no message, which is sent as an empty one": {reply: func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error) {
		return nil, nil //nolint:nilnil // as handlers with nothing to say do
	}, check: wantOK},
	"a message with a field that the program does not know": {reply: func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error) {
		m := &pb.TransferReply{Cents: 42}
		m.ProtoReflect().SetUnknown(unknownField)
		return m, nil
	}, check: func(t *testing.T, r reply) {
		if !strings.Contains(string(r.message), "from a newer build") {
			t.Errorf("%s", r)
		}
	}},
	"header and trailer": {reply: func(ctx context.Context, _ *pb.TransferRequest) (*pb.TransferReply, error) {
		return &pb.TransferReply{Cents: 42}, errors.Join(
			grpc.SetHeader(ctx, metadata.Pairs("x-number", "7", "x-sum-bin", "\x00\xff", "x-number", "8")),
			grpc.SetTrailer(ctx, metadata.Pairs("x-cost", "1")),
			grpc.SetHeader(ctx, metadata.Pairs("X-Number", "6")),
			grpc.SetTrailer(ctx, metadata.Pairs("x-cost", "0", "x-sum-bin", "")),
		)
	}, check: func(t *testing.T, r reply) {
		if fmt.Sprint(r.header["x-number"], r.header["x-sum-bin"], r.trailer["x-cost"]) != "[7 8 6] [\x00\xff] [1 0]" {
			t.Errorf("%s", r)
		}
	}},
	"a header that is sent early": {reply: func(ctx context.Context, _ *pb.TransferRequest) (*pb.TransferReply, error) {
		err := errors.Join(
			grpc.SetHeader(ctx, metadata.Pairs("x-number", "7")),
			grpc.SendHeader(ctx, metadata.Pairs("x-number", "8")),
		)
		if grpc.SetHeader(ctx, metadata.Pairs("x-number", "9")) == nil {
			err = errors.Join(err, errors.New("a header was set after it was sent"))
		}
		return &pb.TransferReply{Cents: 42}, errors.Join(err, grpc.SetTrailer(ctx, metadata.Pairs("x-cost", "1")))
	}, check: func(t *testing.T, r reply) {
		if fmt.Sprint(r.header["x-number"], r.trailer["x-cost"]) != "[7 8] [1]" {
			t.Errorf("%s", r)
		}
	}},
	"a status": {reply: func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error) {
		return nil, status.Error(codes.NotFound, "no account 42")
	}, check: func(t *testing.T, r reply) {
		if r.status.Message() != "no account 42" {
			t.Errorf("%s", r)
		}
	}},
	"a status with details and metadata": {reply: func(ctx context.Context, _ *pb.TransferRequest) (*pb.TransferReply, error) {
		return nil, errors.Join(refusedWithDetails(),
			grpc.SetHeader(ctx, metadata.Pairs("x-number", "7")),
			grpc.SetTrailer(ctx, metadata.Pairs("x-cost", "1")))
	}, check: func(t *testing.T, r reply) {
		if len(r.status.Proto().GetDetails()) != 3 || r.header["x-number"] == nil || r.trailer["x-cost"] == nil {
			t.Errorf("%s", r)
		}
	}},
	"a status that is wrapped": {reply: func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error) {
		return nil, fmt.Errorf("transfer: %w", status.Error(codes.OutOfRange, "too much"))
	}, check: func(t *testing.T, r reply) {
		if !strings.HasPrefix(r.status.Message(), "transfer: ") {
			t.Errorf("%s", r)
		}
	}},
	"a status with a text that is no UTF-8": {reply: func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error) {
		return nil, status.Error(codes.InvalidArgument, "account \xff\n%")
	}, check: func(t *testing.T, r reply) {
		if r.status.Message() == "" {
			t.Errorf("%s", r)
		}
	}},
	"an error without a status, stored on purpose": {
		opts: []core.Option{grpclock.WithStored(func(codes.Code) bool { return true })},
		reply: func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error) {
			return nil, errors.New("broken")
		}, check: func(t *testing.T, r reply) {
			if r.status.Code() != codes.Unknown || r.status.Message() != "broken" {
				t.Errorf("%s", r)
			}
		},
	},
	"the end of a context, stored on purpose": {
		opts: []core.Option{grpclock.WithStored(func(c codes.Code) bool { return c == codes.DeadlineExceeded })},
		reply: func(context.Context, *pb.TransferRequest) (*pb.TransferReply, error) {
			return nil, fmt.Errorf("too slow: %w", context.DeadlineExceeded)
		}, check: func(t *testing.T, r reply) {
			if r.status.Code() != codes.DeadlineExceeded {
				t.Errorf("%s", r)
			}
		},
	},
}

// A copy gets the first answer byte for byte: message, status and details, header and
// trailer.
func TestReplay(t *testing.T) {
	t.Parallel()
	for name, test := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := adaptertest.Locker(t)
			var runs atomic.Int32
			conn := dial(t, listen(t, &bank{reply: func(ctx context.Context, m *pb.TransferRequest) (*pb.TransferReply, error) {
				runs.Add(1)
				if method, ok := grpc.Method(ctx); !ok || method != pb.Bank_Transfer_FullMethodName {
					t.Errorf("the method is %q", method)
				}
				return test.reply(ctx, m)
			}}, idempotent(locks, grpclock.IdempotencyKey(), test.opts...)), plaintext)
			first := ask(marked(t, "8e03978e"), conn, transferOf("a"))
			test.check(t, first)
			for range 2 {
				checkReplay(t, first, ask(marked(t, `"8e03978e"`), conn, transferOf("a")))
			}
			wantRuns(t, &runs, 1)
		})
	}
}

// A copy gets the metadata that gRPC and the interceptors outside set for the copy.
// Metadata of one exchange is not replayed.
func TestMetadataOfTheExchange(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	var runs, exchanges atomic.Int32
	around := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		number := fmt.Sprint(exchanges.Add(1))
		_ = grpc.SetHeader(ctx, metadata.Pairs("x-exchange", number))
		_ = grpc.SetTrailer(ctx, metadata.Pairs("x-exchange", number))
		return next(ctx, req)
	}
	conn := dial(t, listen(t, counted(&runs, func(ctx context.Context, _ *pb.TransferRequest) error {
		md := metadata.Pairs("set-cookie", "s=1", "x-request-id", "1", "traceparent", "1", "grpc-trace-bin", "1",
			"date", "now", "idempotent-replayed", "false", "x-kept", "1")
		return errors.Join(grpc.SetHeader(ctx, md), grpc.SetTrailer(ctx, md))
	}), grpc.ChainUnaryInterceptor(around, grpclock.IdempotentUnaryServerInterceptor(locks, literal))), plaintext)
	first, later := ask(within(t), conn, transferOf("a")), ask(within(t), conn, transferOf("a"))
	wantRuns(t, &runs, 1)
	wantOK(t, first)
	wantOK(t, later)
	if first.header["set-cookie"] == nil || first.trailer["x-request-id"] == nil {
		t.Errorf("the first reply has lost metadata: %s", first)
	}
	want := map[string][]string{"x-exchange": {"2"}, "x-kept": {"1"}}
	if !maps.EqualFunc(later.trailer, want, slices.Equal) {
		t.Errorf("trailer %v, want %v", later.trailer, want)
	}
	want["idempotent-replayed"] = []string{"true"}
	if !maps.EqualFunc(later.header, want, slices.Equal) {
		t.Errorf("header %v, want %v", later.header, want)
	}
}

// An interceptor outside gets a replayed message with the type that the method
// returns.
func TestReplayIsAMessage(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	var seen []int64
	around := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		reply, err := next(ctx, req)
		m, ok := reply.(*pb.TransferReply)
		if !ok {
			t.Errorf("the reply is a %T", reply)
		}
		seen = append(seen, m.GetCents())
		return reply, err
	}
	client := serve(t, &bank{}, grpc.ChainUnaryInterceptor(around, grpclock.IdempotentUnaryServerInterceptor(locks, literal)))
	for range 2 {
		_, err := client.Transfer(within(t), transferOf("a"))
		wantCode(t, err, codes.OK)
	}
	if fmt.Sprint(seen) != "[1 1]" {
		t.Errorf("seen %v", seen)
	}
}

// A call with a record that cannot be read does not run again.
func TestUnreadableRecords(t *testing.T) {
	t.Parallel()
	reply := func(name, message string) []byte {
		return answer.EncodeReply(nil, answer.Reply{Type: name, Message: []byte(message)})
	}
	whole := reply("reqlock.bank.v1.TransferReply", "")
	newer := append([]byte{2}, whole[1:len(whole)-4]...)
	newer = binary.BigEndian.AppendUint32(newer, crc32.Checksum(newer, crc32.MakeTable(crc32.Castagnoli)))
	for name, test := range map[string]struct {
		record []byte
		cause  error // nil: any
	}{
		"nothing":                                {nil, answer.ErrDamaged},
		"damaged":                                {whole[:len(whole)-1], answer.ErrDamaged},
		"of a newer build":                       {newer, answer.ErrVersion},
		"an HTTP answer":                         {answer.Encode(nil, answer.Answer{Status: 200}), answer.ErrKind},
		"a type that the program does not have":  {reply("reqlock.bank.v1.GoneReply", ""), nil},
		"a type that the method does not return": {reply("reqlock.bank.v1.BalanceReply", ""), nil},
		"a name that is no message's":            {reply("reqlock.bank.v1.Bank", ""), nil},
		"a message that cannot be read":          {reply("reqlock.bank.v1.TransferReply", "\x08"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testUnreadable(t, test.record, test.cause)
		})
	}
}

func testUnreadable(t *testing.T, stored []byte, cause error) {
	t.Helper()
	locks, _ := adaptertest.Locker(t)
	attempt, err := locks.Begin(t.Context(), adapter.Must(core.EndpointKey("", pb.Bank_Transfer_FullMethodName, theKey)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := attempt.Commit(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int32
	var asked error
	conn := dial(t, listen(t, counted(&runs, nil), idempotent(locks, literal, core.WithoutFingerprint(),
		grpclock.WithErrorHandler(func(_ *grpclock.Call, err error) error {
			asked = err
			return nil
		}))), plaintext)
	for range 2 {
		got := ask(within(t), conn, transferOf("a"))
		checkStatus(t, got.status.Err(), refusal{code: codes.AlreadyExists, reason: "COMPLETED_UNREPLAYABLE"})
		if got.replayed() {
			t.Error("the refusal is marked as a replay")
		}
	}
	if !errors.Is(asked, core.ErrUnreplayable) || cause != nil && !errors.Is(asked, cause) || detailOf(asked).Cause == nil {
		t.Errorf("refused because of %v", asked)
	}
	wantRuns(t, &runs, 0)
}
