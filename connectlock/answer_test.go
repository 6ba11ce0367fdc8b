package connectlock_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// A wire is a transport that keeps the bytes of the last answer.
type wire struct {
	http.RoundTripper
	mu   sync.Mutex
	last exchange
}

type exchange struct {
	status          int
	header, trailer http.Header
	body            []byte
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = exchange{response.StatusCode, response.Header.Clone(), response.Trailer.Clone(), body}
	w.last.header.Del("Date")
	w.last.moveTrailer()
	return response, err
}

// moveTrailer moves the trailer of gRPC-Web, which is the last frame of the body, to the header. Without
// other headers and a message, a server sends it there.
func (x *exchange) moveTrailer() {
	for at := 0; strings.Contains(x.header.Get("Content-Type"), "grpc-web") && at+5 <= len(x.body); {
		size := int(binary.BigEndian.Uint32(x.body[at+1:]))
		if x.body[at] == 0x80 {
			lines, _ := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(x.body[at+5:], "\r\n"...)))).ReadMIMEHeader()
			maps.Copy(x.header, http.Header(lines))
			x.body = x.body[:at]
		}
		at += 5 + size
	}
}

// ask calls Transfer and returns all that the server has sent.
func ask(t *testing.T, handler http.Handler, protocol connect.ClientOption, requests ...transferRequest) (got []exchange) {
	t.Helper()
	var w wire
	clients := listenOver(t, handler, func(over http.RoundTripper) http.RoundTripper {
		w.RoundTripper = over
		return &w
	})
	c := clients(protocol, connect.WithAcceptCompression("gzip", nil, nil))
	for _, r := range requests {
		_, _ = c.transfer.CallUnary(within(t), r)
		w.mu.Lock()
		got = append(got, w.last)
		w.mu.Unlock()
	}
	return got
}

// checkReplay compares a replay with the first answer, byte for byte.
func checkReplay(t *testing.T, first, later exchange) {
	t.Helper()
	mark := later.header["Idempotent-Replayed"]
	if first.header["Idempotent-Replayed"] != nil || !slices.Equal(mark, []string{"true"}) {
		t.Errorf("marked as a replay: %v", mark)
	}
	later.header = maps.Clone(later.header)
	later.header.Del("Idempotent-Replayed")
	same := func(a, b http.Header) bool { return maps.EqualFunc(a, b, slices.Equal) }
	if later.status != first.status || !bytes.Equal(later.body, first.body) || !same(later.header, first.header) || !same(later.trailer, first.trailer) {
		t.Errorf("%s\nis replayed as\n%s", first, later)
	}
}

// String shows all of an exchange.
func (x exchange) String() string {
	return fmt.Sprintf("%d %v %q %v", x.status, x.header, x.body, x.trailer)
}

// withDetails is an error as services send it, with metadata.
func withDetails() *connect.Error {
	e := connect.NewError(connect.CodeFailedPrecondition, errors.New("no funds"))
	for _, m := range []proto.Message{
		&errdetails.PreconditionFailure{Violations: []*errdetails.PreconditionFailure_Violation{{Type: "FUNDS", Subject: "42"}}},
		&pb.Account{Id: "42"},
	} {
		detail, _ := connect.NewErrorDetail(m)
		e.AddDetail(detail)
	}
	e.Meta().Add("X-Number", "7")
	e.Meta().Add("X-Number", "8")
	e.Meta().Set("X-Sum-Bin", connect.EncodeBinaryHeader([]byte("\x00\xff")))
	return e
}

// unknownField is a field that no message of the bank has.
var unknownField = protowire.AppendString(protowire.AppendTag(nil, 77, protowire.BytesType), "from a newer build")

// Answers as handlers make them, all of which are stored, and what the client gets of them.
var answers = map[string]struct {
	opts  []core.Option
	reply func(context.Context) (transferReply, error)
	want  string
}{
	"a message": {reply: func(context.Context) (transferReply, error) {
		return connect.NewResponse(&pb.TransferReply{Cents: 42}), nil
	}},
	"no message": {reply: func(context.Context) (transferReply, error) {
		return connect.NewResponse[pb.TransferReply](nil), nil
	}},
	"a field that the program does not know": {reply: func(context.Context) (transferReply, error) {
		m := &pb.TransferReply{Cents: 42}
		m.ProtoReflect().SetUnknown(unknownField)
		return connect.NewResponse(m), nil
	}, want: "from a newer build"},
	"header and trailer": {reply: func(ctx context.Context) (transferReply, error) {
		r := connect.NewResponse(&pb.TransferReply{Cents: 42})
		r.Header()["X-Number"] = []string{"7", "8"}
		r.Trailer().Set("X-Cost", "one")
		r.Trailer().Set("X-Sum-Bin", connect.EncodeBinaryHeader([]byte("\x00\xff")))
		info, _ := connect.CallInfoForHandlerContext(ctx)
		info.ResponseHeader().Add("X-Number", "6")
		info.ResponseTrailer().Add("X-Cost", "two")
		return r, nil
	}, want: "[6 7 8]"},
	"an error": {reply: func(context.Context) (transferReply, error) {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no account 42"))
	}, want: "no account 42"},
	"an error without a text": {reply: func(context.Context) (transferReply, error) {
		return nil, connect.NewError(connect.CodeNotFound, nil)
	}},
	"an error with details, metadata, header and trailer": {reply: func(ctx context.Context) (transferReply, error) {
		info, _ := connect.CallInfoForHandlerContext(ctx)
		info.ResponseHeader().Set("X-Number", "6")
		info.ResponseTrailer().Set("X-Cost", "two")
		info.ResponseTrailer().Set("X-Number", "9")
		return nil, withDetails()
	}, want: "two"},
	"an error that is wrapped": {reply: func(context.Context) (transferReply, error) {
		return nil, fmt.Errorf("transfer: %w", withDetails())
	}, want: "no funds"},
	"an error of another service": {reply: func(context.Context) (transferReply, error) {
		e := connect.NewWireError(connect.CodeOutOfRange, errors.New("too much"))
		e.Meta().Set("X-Secret", "of the other service")
		return nil, e
	}, want: "too much"},
	"an error without a code, stored on purpose": {
		opts:  []core.Option{connectlock.WithStored(func(connect.Code) bool { return true })},
		reply: func(context.Context) (transferReply, error) { return nil, errors.New("broken") },
		want:  "broken",
	},
	"a nil error, stored on purpose": {
		opts:  []core.Option{connectlock.WithStored(func(connect.Code) bool { return true })},
		reply: func(context.Context) (transferReply, error) { return nil, (*connect.Error)(nil) },
		want:  "unknown",
	},
	"a client that Connect finds gone, stored on purpose": {
		opts:  []core.Option{connectlock.WithStored(func(c connect.Code) bool { return c == connect.CodeCanceled })},
		reply: func(context.Context) (transferReply, error) { return nil, errors.New("http2: stream closed") },
		want:  "stream closed",
	},
	"the end of a context, stored on purpose": {
		opts: []core.Option{connectlock.WithStored(func(c connect.Code) bool { return c == connect.CodeDeadlineExceeded })},
		reply: func(context.Context) (transferReply, error) {
			return nil, fmt.Errorf("slow: %w", context.DeadlineExceeded)
		},
		want: "slow: context deadline exceeded",
	},
	"a timeout of a connection, stored on purpose": {
		opts: []core.Option{connectlock.WithStored(func(c connect.Code) bool { return c == connect.CodeDeadlineExceeded })},
		reply: func(context.Context) (transferReply, error) {
			return nil, fmt.Errorf("slow: %w", os.ErrDeadlineExceeded)
		},
		want: "slow: i/o timeout",
	},
	"a connection that was reset, stored on purpose": {
		opts:  []core.Option{connectlock.WithStored(func(c connect.Code) bool { return c == connect.CodeCanceled })},
		reply: func(context.Context) (transferReply, error) { return nil, fmt.Errorf("broken: %w", syscall.ECONNRESET) },
		want:  "broken: connection reset by peer",
	},
	"a client that has gone, stored on purpose": {
		opts:  []core.Option{connectlock.WithStored(func(c connect.Code) bool { return c == connect.CodeCanceled })},
		reply: func(context.Context) (transferReply, error) { return nil, context.Canceled },
		want:  "context canceled",
	},
}

// A copy gets the first answer byte for byte on each protocol, in either form of the key: the message,
// or the error with its details and metadata, the header and the trailer.
func TestReplayIsTheSameOnEachProtocol(t *testing.T) {
	t.Parallel()
	for name, test := range answers {
		for protocol, option := range protocols {
			t.Run(name+", "+protocol, func(t *testing.T) {
				t.Parallel()
				locks, _ := adaptertest.Locker(t)
				var runs atomic.Int32
				b := &bank{transfer: func(ctx context.Context, _ transferRequest) (transferReply, error) {
					runs.Add(1)
					return test.reply(ctx)
				}}
				once := connectlock.IdempotentInterceptor(locks, connectlock.IdempotencyKey(), test.opts...)
				got := ask(t, b.handler(locked(once)), option,
					transferOf("a", "idempotency-key", "8e03978e"), transferOf("a", "Idempotency-Key", `"8e03978e"`), transferOf("a", "idempotency-key", "8e03978e"))
				if !strings.Contains(got[0].String(), test.want) {
					t.Errorf("%s without %q", got[0], test.want)
				}
				checkReplay(t, got[0], got[1])
				checkReplay(t, got[0], got[2])
				if runs.Load() != 1 {
					t.Errorf("%d runs", runs.Load())
				}
			})
		}
	}
}

// Several calls may return the same error at once: storing it does not change it.
func TestErrorThatCallsShare(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	shared := connect.NewError(connect.CodeNotFound, nil)
	call := unary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return nil, shared },
		connectlock.IdempotentInterceptor(locks, connectlock.IdempotencyKey()))
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() { _, _ = call(t.Context(), transferOf("a", "Idempotency-Key", fmt.Sprint(i))) })
	}
	calls.Wait()
	if before := *shared; len(before.Details()) != 0 || !reflect.DeepEqual(before, *connect.NewError(connect.CodeNotFound, nil)) {
		t.Errorf("the error is now %+v", before)
	}
}

// An answer that was stored for a call on one protocol is the answer on each.
func TestReplayOnAnotherProtocol(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	b := &bank{transfer: func(_ context.Context, r transferRequest) (transferReply, error) {
		if r.Msg.GetAccount().GetId() == "poor" {
			return nil, withDetails()
		}
		reply := connect.NewResponse(&pb.TransferReply{Cents: 42})
		reply.Trailer().Set("X-Cost", "1")
		return reply, nil
	}}
	clients := listen(t, b.handler(locked(connectlock.IdempotentInterceptor(locks, connectlock.IdempotencyKey()))))
	for _, option := range []connect.ClientOption{connect.WithProtoJSON(), connect.WithGRPC(), connect.WithGRPCWeb(), connect.WithClientOptions()} {
		c := clients(option)
		reply, err := c.transfer.CallUnary(within(t), transferOf("rich", "idempotency-key", "rich"))
		if err != nil || reply.Msg.GetCents() != 42 || reply.Trailer().Get("X-Cost") != "1" {
			t.Errorf("%v, %v", reply, err)
		}
		_, err = c.transfer.CallUnary(within(t), transferOf("poor", "idempotency-key", "poor"))
		var own *connect.Error
		if !errors.As(err, &own) || own.Code() != connect.CodeFailedPrecondition || len(own.Details()) != 2 ||
			!slices.Equal(own.Meta()["X-Number"], []string{"7", "8"}) {
			t.Errorf("%v with %v", err, own.Meta())
		}
	}
}

// A copy gets the metadata that interceptors outside set for the copy. Metadata of one exchange is not
// replayed. An interceptor outside gets the message with the type that the method returns.
func TestMetadataOfTheExchangeIsNotReplayed(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	var exchanges atomic.Int32
	around := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			number := fmt.Sprint(exchanges.Add(1))
			info, _ := connect.CallInfoForHandlerContext(ctx)
			info.ResponseHeader().Set("X-Exchange", number)
			info.ResponseTrailer().Set("X-Exchange", number)
			reply, err := next(ctx, req)
			if err != nil {
				return nil, err
			}
			if m, ok := reply.Any().(*pb.TransferReply); !ok || m.GetCents() != 42 {
				t.Errorf("the reply is a %T", reply.Any())
			}
			reply.Header().Set("X-After", number)
			return reply, nil
		}
	})
	ofOne := []string{"Set-Cookie", "X-Request-Id", "Traceparent"}
	b := &bank{transfer: func(_ context.Context, r transferRequest) (transferReply, error) {
		if r.Msg.GetAccount().GetId() == "poor" {
			e := connect.NewError(connect.CodeNotFound, nil)
			for _, name := range append(ofOne, "X-Kept") {
				e.Meta().Set(name, "1")
			}
			return nil, e
		}
		reply := connect.NewResponse(&pb.TransferReply{Cents: 42})
		for _, name := range append(ofOne, "X-Kept") {
			reply.Header().Set(name, "1")
			reply.Trailer().Set(name, "1")
		}
		return reply, nil
	}}
	once := connectlock.IdempotentInterceptor(locks, connectlock.Message(func(m *pb.TransferRequest) string { return m.GetAccount().GetId() }))
	for _, id := range []string{"rich", "poor"} {
		got := ask(t, b.handler(locked(around, once)), protocols["Connect"], transferOf(id), transferOf(id))
		for i, x := range got {
			for _, name := range ofOne {
				_, inHeader := x.header[name]
				_, inTrailer := x.header["Trailer-"+name]
				if inHeader != (i == 0) || inTrailer && i == 1 {
					t.Errorf("%s, answer %d: %s", id, i, x)
				}
			}
			number, kept := x.header["X-Exchange"], x.header["X-Kept"]
			if len(number) != 1 || x.header.Get("Trailer-X-Exchange") != number[0] || len(kept) != 1 || id == "rich" && x.header.Get("X-After") != number[0] {
				t.Errorf("%s, answer %d: %s", id, i, x)
			}
		}
		if got[0].header.Get("X-Exchange") == got[1].header.Get("X-Exchange") {
			t.Errorf("%s: the copy has the metadata of the first exchange", id)
		}
	}
}

// A call with a record that cannot be read does not run again. One that was stored by a gRPC server of
// the same method can be read.
func TestRecordsOfOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stored adapter.RPCAnswer
		code   connect.Code
	}{
		"of grpclock":                            {adapter.RPCAnswer{Type: "reqlock.bank.v1.TransferReply", Trailer: map[string][]string{"x-cost": {"1"}}}, 0},
		"an error of grpclock":                   {adapter.RPCAnswer{Code: 5, Trailer: map[string][]string{"x-cost": {"1"}}}, connect.CodeNotFound},
		"a type that the program does not have":  {adapter.RPCAnswer{Type: "reqlock.bank.v1.GoneReply"}, connect.CodeAlreadyExists},
		"a type that the method does not return": {adapter.RPCAnswer{Type: "reqlock.bank.v1.BalanceReply"}, connect.CodeAlreadyExists},
		"a message that cannot be read":          {adapter.RPCAnswer{Type: "reqlock.bank.v1.TransferReply", Message: []byte{8}}, connect.CodeAlreadyExists},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := adaptertest.Locker(t)
			resolve(t, locks, adapter.NewRPCAnswer(test.stored))
			c := serve(t, &bank{}, locked(connectlock.IdempotentInterceptor(locks, literal, core.WithoutFingerprint())))
			reply, err := c.transfer.CallUnary(within(t), transferOf("a"))
			wantCode(t, err, test.code)
			switch test.code {
			case connect.CodeAlreadyExists:
				if reasonOf(err) != "COMPLETED_UNREPLAYABLE" {
					t.Errorf("%v", err)
				}
			case 0:
				if reply.Trailer().Get("X-Cost") != "1" {
					t.Errorf("trailer %v", reply.Trailer())
				}
			default:
				if own := new(connect.Error); !errors.As(err, &own) || own.Meta().Get("X-Cost") != "1" {
					t.Errorf("metadata %v", own.Meta())
				}
			}
		})
	}
}

// resolve ends an unknown outcome of theKey with an answer, as an operator does.
func resolve(t *testing.T, locks *core.Locker, answer core.Answer) {
	t.Helper()
	key := adapter.Must(core.EndpointKey("", pb.Bank_Transfer_FullMethodName, theKey))
	attempt, err := locks.Begin(t.Context(), key, nil)
	if err == nil {
		err = attempt.Unknown(t.Context(), nil)
	}
	record, fault := locks.ReadRecord(t.Context(), key)
	if err := errors.Join(err, fault, locks.Resolve(t.Context(), key, core.Answered(answer), record.Attempt)); err != nil {
		t.Fatal(err)
	}
}

// Copies get the answer with which an operator ends an unknown outcome.
func TestAnswerOfAnOperator(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply *pb.TransferReply
		err   error
		code  connect.Code
	}{
		"a message": {&pb.TransferReply{Cents: 42}, nil, 0},
		"an error":  {nil, withDetails(), connect.CodeFailedPrecondition},
	} {
		locks, _ := adaptertest.Locker(t)
		resolve(t, locks, adapter.Must(connectlock.NewAnswer(test.reply, test.err)))
		c := serve(t, &bank{}, locked(connectlock.IdempotentInterceptor(locks, literal, core.WithoutFingerprint())))
		reply, err := c.transfer.CallUnary(within(t), transferOf("a"))
		if wantCode(t, err, test.code); err == nil && reply.Msg.GetCents() != 42 || err != nil && !strings.Contains(err.Error(), "no funds") {
			t.Errorf("%s: %v, %v", name, reply, err)
		}
	}
	if got, err := connectlock.NewAnswer(nil, nil); got != (core.Answer{}) || err == nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := connectlock.NewAnswer(&pb.Account{Id: "\xff"}, nil); err == nil {
		t.Error("a message that cannot be encoded is an answer")
	}
}

// A handler that replaces a header of an interceptor outside replaces it in each copy, too.
func TestReplayReplacesTheHeaderOfAnInterceptorOutside(t *testing.T) {
	t.Parallel()
	locks, _ := adaptertest.Locker(t)
	set := func(ctx context.Context, value string) {
		info, _ := connect.CallInfoForHandlerContext(ctx)
		info.ResponseHeader().Set("X-Number", value)
		info.ResponseTrailer().Set("X-Cost", value)
	}
	around := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			set(ctx, "outside")
			return next(ctx, req)
		}
	})
	b := &bank{transfer: func(ctx context.Context, _ transferRequest) (transferReply, error) {
		set(ctx, "inside")
		return connect.NewResponse(&pb.TransferReply{Cents: 42}), nil
	}}
	got := ask(t, b.handler(locked(around, connectlock.IdempotentInterceptor(locks, literal))), protocols["Connect"], transferOf("a"), transferOf("a"))
	checkReplay(t, got[0], got[1])
}
