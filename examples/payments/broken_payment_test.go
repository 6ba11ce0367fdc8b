package main

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/nethttplock"
)

// runPayments runs a program with only the scenario of payments on one framework.
func runPayments(t *testing.T, on framework) (code int, printed string) {
	t.Helper()
	p, out := newProgram("", on)
	p.scenarios = func(w protocol) []scenario { return allScenarios(w)[4:5] }
	code = p.run(t.Context())
	return code, out.String()
}

// TestWrongPaymentIsReported breaks the idempotency of payments in each way that the
// scenario detects.
func TestWrongPaymentIsReported(t *testing.T) {
	t.Parallel()
	const mark = "Idempotent-Replayed"
	isReplay := func(a *httptest.ResponseRecorder) bool { return a.Header().Get(mark) != "" }
	onHTTP := func(once func(wrapper, *core.Locker) wrapper) framework {
		return changedNetHTTP(func(s *nethttpService, locks *core.Locker) { s.once = once(s.once, locks) })
	}
	alteredHTTP := func(alter func(*httptest.ResponseRecorder)) framework {
		return onHTTP(func(once wrapper, _ *core.Locker) wrapper { return altered(once, alter) })
	}
	idempotent := func(key nethttplock.KeyFunc, opts ...nethttplock.Option) framework {
		return onHTTP(func(_ wrapper, locks *core.Locker) wrapper {
			return nethttplock.Idempotent(locks, key, opts...)
		})
	}
	onGRPC := func(once func(grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor) framework {
		return changedGRPC(func(s *grpcService) { s.once = once(s.once) })
	}
	alteredGRPC := func(alter func(metadata.MD, *pb.TransferReply)) framework {
		return onGRPC(func(once grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor { return alteredCall(once, alter) })
	}
	wait := core.WithWait(10 * time.Second)
	var answered atomic.Int32
	tests := []struct {
		name     string
		on       framework
		happened string
	}{
		{
			"the handler runs twice",
			onHTTP(func(once wrapper, _ *core.Locker) wrapper { return ranTwice(once) }),
			"2 charges, 8 + 9 replays, all equal",
		},
		{
			"answers are not kept",
			idempotent(nethttplock.IdempotencyKey(), nethttplock.WithStored(func(int) bool { return false }), wait),
			"18 charges, 0 + 0 replays, 18 different answers",
		},
		{
			"another key for each request",
			idempotent(core.Of(func(*http.Request) string { return rand.Text() }), wait),
			" charges, 0 + 0 replays, ",
		},
		{
			"copies do not wait",
			idempotent(nethttplock.IdempotencyKey()),
			"1 charge, 0 + 9 replays, all equal, 8 × 409 + Retry-After",
		},
		{
			"nothing is paid",
			onHTTP(func(wrapper, *core.Locker) wrapper {
				return func(http.Handler) http.Handler { return http.NotFoundHandler() }
			}),
			"0 charges, 0 + 0 replays, 18 × 404",
		},
		{
			"replays are not marked",
			alteredHTTP(func(a *httptest.ResponseRecorder) { a.Header().Del(mark) }),
			"1 charge, 0 + 0 replays, all equal",
		},
		{
			"the first answer is marked",
			alteredHTTP(func(a *httptest.ResponseRecorder) { a.Header().Set(mark, "true") }),
			"1 charge, 9 + 9 replays, all equal",
		},
		{
			"the mark of one replay is on the first answer",
			alteredHTTP(func(a *httptest.ResponseRecorder) {
				if answered.Add(1) == 2*nine {
					a.Header().Del(mark)
				} else {
					a.Header().Set(mark, "true")
				}
			}),
			"1 charge, 9 + 8 replays, all equal",
		},
		{
			"the first answer tells of a failure",
			alteredHTTP(func(a *httptest.ResponseRecorder) {
				if !isReplay(a) {
					a.Code = http.StatusInternalServerError
				}
			}),
			"1 charge, 8 + 9 replays, all equal, 1 × 500",
		},
		{
			"the body of replays is longer",
			alteredHTTP(func(a *httptest.ResponseRecorder) {
				if isReplay(a) {
					a.Body.WriteByte('\n')
				}
			}),
			"1 charge, 8 + 9 replays, 2 different answers",
		},
		{
			"replays have another status",
			alteredHTTP(func(a *httptest.ResponseRecorder) {
				if isReplay(a) {
					a.Code = http.StatusCreated
				}
			}),
			"1 charge, 8 + 9 replays, 2 different answers",
		},
		{
			"replays have another content type",
			alteredHTTP(func(a *httptest.ResponseRecorder) {
				if isReplay(a) {
					a.Header().Set("Content-Type", "text/plain")
				}
			}),
			"1 charge, 8 + 9 replays, 2 different answers",
		},
		{"the handler runs twice", onGRPC(ranTwiceCall), "2 charges, 8 + 9 replays, all equal"},
		{
			"replays are not marked",
			alteredGRPC(func(header metadata.MD, _ *pb.TransferReply) { delete(header, replayedMark) }),
			"1 charge, 0 + 0 replays, all equal",
		},
		{
			"the first answer is marked",
			alteredGRPC(func(header metadata.MD, _ *pb.TransferReply) { header.Set(replayedMark, "true") }),
			"1 charge, 9 + 9 replays, all equal",
		},
		{
			"replays have another message",
			alteredGRPC(func(header metadata.MD, reply *pb.TransferReply) {
				if len(header.Get(replayedMark)) > 0 {
					reply.Cents++
				}
			}),
			"1 charge, 8 + 9 replays, 2 different answers",
		},
		{
			"replays have other metadata",
			alteredGRPC(func(header metadata.MD, _ *pb.TransferReply) {
				if len(header.Get(replayedMark)) > 0 {
					delete(header, "transfer-number")
				}
			}),
			"1 charge, 8 + 9 replays, 2 different answers",
		},
	}
	for _, test := range tests {
		t.Run(test.name+" on "+test.on.Name, func(t *testing.T) {
			t.Parallel()
			code, printed := runPayments(t, test.on)
			if code != exitUnexpected || marks(printed) != "✗" || !strings.Contains(printed, test.happened) {
				t.Errorf("exit code %d, and not %q\n%s", code, test.happened, printed)
			}
		})
	}
	// The wrappers alone break nothing.
	for _, on := range []framework{
		alteredHTTP(func(*httptest.ResponseRecorder) {}),
		alteredGRPC(func(metadata.MD, *pb.TransferReply) {}),
	} {
		t.Run("nothing broken on "+on.Name, func(t *testing.T) {
			t.Parallel()
			if code, printed := runPayments(t, on); code != exitExpected {
				t.Errorf("exit code %d\n%s", code, printed)
			}
		})
	}
}
