package conformance

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A grpcScenario is one row of the table of idempotent unary calls.
type grpcScenario struct {
	name string
	run  func(b *grpcEnvironment)
}

// ownServers are the rows that would disturb other rows on the same servers.
var ownServers = map[string]bool{scriptsFlushed: true}

// startOwn starts servers of the kind for one row.
func startOwn(tb testing.TB, kind redistest.Kind) *redistest.Deployment { return kind.Start(tb) }

// grpcScenarios are all rows.
func grpcScenarios() []grpcScenario {
	return slices.Concat(
		grpcKeyScenarios(),
		grpcPayloadScenarios(),
		grpcConcurrencyScenarios(),
		grpcAnswerScenarios(),
		grpcLeaseScenarios(),
		grpcChainScenarios(),
		grpcRedisScenarios(),
		grpcEventScenarios(),
	)
}

// notOverGRPC are failures of idempotent requests that have no row, and why.
var notOverGRPC = map[string]string{
	"control characters and other bytes beyond ASCII in a key": "gRPC's clients refuse to send them; keypart has the table of malformed keys",
	"methods in lower case, and safe methods":                  "the name of a gRPC method does not state its effects; ByMethod lists the methods",
	"a warning where the key is not scoped":                    "an interceptor does not know the user; the package comment recommends the scoped key",
	"braces in keys and cluster slots":                         "keys are digests (core.EndpointKey); the store chooses the Redis keys",
	"a body that is restored, closed, chunked or over a limit": "gRPC reads and bounds the message before the interceptor",
	"a body that cannot be read":                               "such a call does not reach an interceptor",
	"path, query and multipart boundaries":                     "a call has none",
	"another fingerprint version during a deploy":              "there is one version; a deploy must not change WithFingerprint, as documented",
	"a claim after its caller's context has ended":             "core's Begin releases it, and has tests of that",
	"a lost wake-up message":                                   "the engine checks Redis again, and has tests of that",
	"status, Location, Date, Content-Length, Connection":       "they belong to HTTP; metadata that is never replayed has a row",
	"1xx answers, implicit statuses, HEAD":                     "a call has one answer",
	"http.ErrAbortHandler, gin's and echo's own errors":        "gRPC has no such panic, and its handlers return errors",
	"flushed and hijacked answers, SSE, WebSocket":             "a unary answer is one message; an early header has a row",
	"writes after the handler has returned":                    "the message is returned, not written",
	"SIGKILL of the service at each step":                      "tests/crash, with processes",
	"a clock that jumps, a paused process":                     "the leases depend on Redis's clock; the engine's tests pause processes",
	"failover, READONLY, LOADING, MOVED, OOM":                  "the store reports each as unavailable, and has tests of each; unavailable before and after have rows",
	"an ACL without PUBLISH":                                   "the store's tests",
	"a tombstone after the record's end":                       "there is none: the key is free again, as documented",
	"random schedules and their model":                         "core's tests, which are independent of frameworks",
}

// TestGRPCScenarios runs each row on a real server, over real connections.
func TestGRPCScenarios(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, scenario := range grpcScenarios() {
		if names[scenario.name] {
			t.Errorf("two rows have the name %q", scenario.name)
		}
		names[scenario.name] = true
	}
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			kind.SkipRepeats(t)
			t.Parallel()
			for _, scenario := range grpcScenarios() {
				t.Run(scenario.name, func(t *testing.T) {
					t.Parallel()
					servers := redistest.Shared
					if ownServers[scenario.name] {
						servers = startOwn
					}
					b := &grpcEnvironment{environment: newEnvironment(t, overGRPCUnary(), servers(t, kind))}
					scenario.run(b)
					b.wantTTLs()
				})
			}
		})
	}
	for _, what := range slices.Sorted(maps.Keys(notOverGRPC)) {
		t.Logf("does not apply: %s: %s", what, notOverGRPC[what])
	}
}

// A grpcEnvironment serves one row. Each run of the method has a number, which is its answer.
type grpcEnvironment struct {
	*environment
	runs atomic.Int32
}

// process returns the Locker of another process, with its own connections.
func (b *grpcEnvironment) process(opts ...core.Option) (*core.Locker, *redistest.Proxy) {
	b.Helper()
	proxy := b.redis.Proxy(b.T)
	locks := core.Must(core.New(b.connect(proxy), busyMachine(append(opts, core.WithPrefix(b.prefix))...)...))
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

// wantRuns fails the test unless this many calls have run.
func (b *grpcEnvironment) wantRuns(want int32) {
	b.Helper()
	if got := b.runs.Load(); got != want {
		b.Errorf("%d calls have run, not %d", got, want)
	}
}

// recordOf returns the name of a key's record in Redis.
func (b *grpcEnvironment) recordOf(key string) string {
	return "{" + b.prefix + "i:" + core.EndpointKey("", pb.TestService_UnaryCall_FullMethodName, key) + "}:r"
}

// forgetRecord deletes a record, as its TTL or a failover does. It may be called from any
// goroutine.
func (b *grpcEnvironment) forgetRecord(key string) {
	b.Helper()
	if n, err := b.rdb.Del(context.Background(), b.recordOf(key)).Result(); n != 1 {
		b.Errorf("%d records deleted, %v", n, err)
	}
}

// wantTTLs fails the test if a Redis key has no TTL.
func (b *grpcEnvironment) wantTTLs() {
	b.Helper()
	for _, name := range b.names(context.Background(), "") {
		if life := b.rdb.PTTL(context.Background(), name).Val(); life == -1 {
			b.Errorf("%s has no TTL", name)
		}
	}
}

// refusedBy returns a status of the application.
func refusedBy(code codes.Code) error { return status.Error(code, "no") }
