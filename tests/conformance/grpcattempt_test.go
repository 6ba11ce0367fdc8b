package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A grpcScenario is one row of the table of idempotent unary calls.
type grpcScenario struct {
	name string
	run  func(b *teller)
}

// alone are the rows that would disturb others on the same servers: they run
// before them.
var alone = map[string]bool{"redis: it forgets its scripts": true}

// grpcScenarios are all rows.
func grpcScenarios() []grpcScenario {
	return slices.Concat(
		grpcKeyScenarios(),
		grpcPayloadScenarios(),
		grpcCrowdScenarios(),
		grpcAnswerScenarios(),
		grpcLeaseScenarios(),
		grpcRedisScenarios(),
	)
}

// notOverGRPC is what can happen to an idempotent request elsewhere, and why
// there is no row of it.
var notOverGRPC = map[string]string{
	"control characters and other bytes beyond ASCII in a key": "gRPC's clients refuse to send them; keypart has the table of malformed keys",
	"methods in lower case, and safe methods":                  "a gRPC method is a name, and says nothing of its effects; ByMethod lists those that count",
	"a warning where the key is not scoped":                    "an interceptor does not know who is authenticated; the package comment leads to the scoped key",
	"braces in keys and cluster slots":                         "keys are digests (core.EndpointKey); the names in Redis are the store's",
	"a body that is restored, closed, chunked or over a limit": "gRPC reads the message before an interceptor sees it, and bounds it by itself",
	"a body that cannot be read":                               "such a call does not reach an interceptor",
	"path, query and multipart boundaries":                     "a call has none",
	"another fingerprint version during a deploy":              "there is one version; WithFingerprint is documented as what a deploy must not change",
	"a claim that comes after its caller's context has ended":  "core's Begin gives it back, and its tests see to it",
	"a wake-up that is lost":                                   "the engine asks again by itself, and its tests see to it",
	"status, Location, Date, Content-Length, Connection":       "HTTP's; metadata that is never replayed has a row",
	"1xx answers, implicit statuses, HEAD":                     "a call has one answer",
	"http.ErrAbortHandler, gin's and echo's own errors":        "gRPC knows no panic that is not a crash, and its handlers return their errors",
	"flushed and hijacked answers, SSE, WebSocket":             "a unary answer is sent whole; an early header has a row",
	"writes after the handler has returned":                    "the message is returned, not written",
	"SIGKILL of the service at each step":                      "a program of its own is killed, see the crash test",
	"a clock that jumps, a paused process":                     "Redis's clock decides; the engine's tests pause processes",
	"failover, READONLY, LOADING, MOVED, OOM":                  "the store tells them all as unavailable, and its tests have each; down before and after have rows",
	"an ACL without PUBLISH":                                   "the store's",
	"a tombstone after the record's end":                       "there is none: the key is free again, as documented",
	"a schedule at random and its model":                       "core's, which knows no framework",
}

// TestGRPCScenarios runs each row on a real server, over real connections.
//
//faults:row 45, 46, 47, 49, 50: over gRPC
func TestGRPCScenarios(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, scenario := range grpcScenarios() {
		if names[scenario.name] {
			t.Errorf("two rows are called %q", scenario.name)
		}
		names[scenario.name] = true
	}
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			servers := kind.Start(t)
			for _, scenario := range grpcScenarios() {
				t.Run(scenario.name, func(t *testing.T) {
					if !alone[scenario.name] {
						t.Parallel()
					}
					b := &teller{env: newEnv(t, overGRPCUnary(), servers)}
					scenario.run(b)
					b.wantLives()
				})
			}
		})
	}
	for _, what := range slices.Sorted(maps.Keys(notOverGRPC)) {
		t.Logf("does not apply: %s: %s", what, notOverGRPC[what])
	}
}

// A teller is the server of one row: each call that runs has a number, which is
// its answer.
type teller struct {
	*env
	runs atomic.Int32
}

// A grpcHandler says what becomes of a call; nil is its number.
type grpcHandler func(ctx context.Context, m *pb.SimpleRequest) error

// A submission is the client's side of a teller.
type submission struct {
	b      *teller
	client pb.TestServiceClient
	addr   string
}

// serve serves under IdempotencyKey.
func (b *teller) serve(handle grpcHandler, opts ...grpclock.Option) *submission {
	b.Helper()
	return b.serveOn(b.locks, handle, opts...)
}

// serveOn serves as another process with its own Locker does.
func (b *teller) serveOn(l *core.Locker, handle grpcHandler, opts ...grpclock.Option) *submission {
	b.Helper()
	return b.serveBehind(handle, grpclock.IdempotentUnaryServerInterceptor(l, grpclock.IdempotencyKey(), opts...))
}

// serveBehind serves behind interceptors.
func (b *teller) serveBehind(handle grpcHandler, chain ...grpc.UnaryServerInterceptor) *submission {
	b.Helper()
	s := listenGRPC(b.T, tellerService{b: b, handle: handle}, unaryCall, grpc.ChainUnaryInterceptor(chain...)).(grpcServer)
	return &submission{b, s.TestServiceClient, s.addr}
}

type tellerService struct {
	pb.UnimplementedTestServiceServer
	b      *teller
	handle grpcHandler
}

func (s tellerService) UnaryCall(ctx context.Context, m *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	reply := &pb.SimpleResponse{Username: fmt.Sprint(s.b.runs.Add(1))}
	if s.handle == nil {
		return reply, nil
	}
	if err := s.handle(ctx, m); err != nil {
		return nil, err
	}
	return reply, nil
}

// A receipt is what a client got of a call.
type receipt struct {
	answer
	message         *pb.SimpleResponse
	err             error
	header, trailer metadata.MD
}

// send makes a call with the metadata idempotency-key, and others.
func (p *submission) send(ctx context.Context, key string, m *pb.SimpleRequest, others ...string) receipt {
	return p.call(metadata.AppendToOutgoingContext(ctx, append(others, "idempotency-key", key)...), m)
}

// call makes a call.
func (p *submission) call(ctx context.Context, m *pb.SimpleRequest, opts ...grpc.CallOption) receipt {
	p.b.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	var r receipt
	r.message, r.err = p.client.UnaryCall(ctx, m, append(opts, grpc.Header(&r.header), grpc.Trailer(&r.trailer))...)
	r.answer = answerOf(r.message.GetUsername(), r.err, r.header, r.trailer)
	for _, secret := range []string{theKey, p.b.ours} {
		if strings.Contains(r.raw, secret) {
			p.b.Errorf("the answer tells a key or a token: %s", r.raw)
		}
	}
	r.header.Delete("content-type")
	r.trailer.Delete("content-type")
	return r
}

// retrying is another client, which sends a call again that ends with the code.
func (p *submission) retrying(code codes.Code) *submission {
	p.b.Helper()
	policy := fmt.Sprintf(`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.01s",
		"maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": [%d]}}]}`, code)
	conn, err := grpc.NewClient(p.addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(policy))
	if err != nil {
		p.b.Fatal(err)
	}
	p.b.Cleanup(func() { _ = conn.Close() })
	return &submission{p.b, pb.NewTestServiceClient(conn), p.addr}
}

// incoming returns the metadata of a name that a call came with.
func incoming(ctx context.Context, name string) []string {
	return metadata.ValueFromIncomingContext(ctx, name)
}

// pay is the call that most rows send.
func (p *submission) pay() receipt {
	p.b.Helper()
	return p.send(p.b.Context(), theKey, paid)
}

var paid = &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: "7 to ada"}}

// replayed reports whether an answer is marked as a replay.
func (r receipt) replayed() bool {
	return slices.Equal(r.header["idempotent-replayed"], []string{"true"})
}

// wantFirst fails the test unless a call has run with this number.
func (p *submission) wantFirst(r receipt, number int) receipt {
	p.b.Helper()
	if r.text != fmt.Sprint(number) || r.replayed() {
		p.b.Errorf("not the answer of call %d: %+v", number, r)
	}
	return r
}

// wantReplay fails the test unless an answer is the first one again.
func (p *submission) wantReplay(first, r receipt) {
	p.b.Helper()
	header := r.header.Copy()
	header.Delete("idempotent-replayed")
	switch {
	case !r.replayed():
		p.b.Errorf("not marked as a replay: %+v", r)
	case !proto.Equal(first.message, r.message), !proto.Equal(status.Convert(first.err).Proto(), status.Convert(r.err).Proto()),
		!maps.EqualFunc(first.header, header, slices.Equal), !maps.EqualFunc(first.trailer, r.trailer, slices.Equal):
		p.b.Errorf("%+v\nis replayed as\n%+v", first, r)
	}
}

// wantRefused fails the test unless a call was refused with an error.
func (p *submission) wantRefused(r receipt, want error) {
	p.b.Helper()
	if r.verdict != p.b.rowOf(want) || r.replayed() {
		p.b.Errorf("%+v, want %+v", r, p.b.rowOf(want))
	}
}

// process returns the Locker of another process, on a connection of its own.
func (b *teller) process(opts ...core.Option) (*core.Locker, *redistest.Proxy) {
	b.Helper()
	proxy := b.redis.Proxy(b.T)
	opts = append([]core.Option{core.WithPrefix(b.prefix), core.WithCommandTimeout(2 * time.Second)}, opts...)
	locks := core.Must(core.New(b.connect(proxy), opts...))
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		proxy.Refuse(false)
		if err := locks.Close(ctx); err != nil {
			b.Errorf("Close: %v", err)
		}
	})
	return locks, proxy
}

// wantRuns fails the test unless so many calls have run.
func (b *teller) wantRuns(want int32) {
	b.Helper()
	if got := b.runs.Load(); got != want {
		b.Errorf("%d calls have run, not %d", got, want)
	}
}

// recordOf returns the name of a key's record in Redis.
func (b *teller) recordOf(key string) string {
	return "{" + b.prefix + "i:" + core.EndpointKey("", pb.TestService_UnaryCall_FullMethodName, key) + "}:r"
}

// forgetRecord deletes a record, as its time or a failover does. It may be called from
// any goroutine.
func (b *teller) forgetRecord(key string) {
	b.Helper()
	if n, err := b.rdb.Del(context.Background(), b.recordOf(key)).Result(); n != 1 {
		b.Errorf("%d records deleted, %v", n, err)
	}
}

// wantLives fails the test if a key in Redis stays for ever.
func (b *teller) wantLives() {
	b.Helper()
	for _, name := range b.names(context.Background(), "") {
		if life := b.rdb.PTTL(context.Background(), name).Val(); life == -1 {
			b.Errorf("%s stays for ever", name)
		}
	}
}

// refusedBy is a status of the application.
func refusedBy(code codes.Code) error { return status.Error(code, "no") }
