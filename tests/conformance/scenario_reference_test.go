package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"connectrpc.com/connect"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/reqlock/reqlock/connectlock"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// numbered returns an option that refers to each request by its number, if its context has the trace.
func numbered() core.Option {
	var n atomic.Int32
	return core.WithReference(func(ctx context.Context) string {
		if ctx.Value(traceKey{}) != theTrace {
			return "another context"
		}
		return fmt.Sprintf("request %d \"<", n.Add(1))
	})
}

// theFirst is the reference of the first request.
const theFirst = "request 1 \"<"

// referenceScenarios test that copies learn which request was the first one.
func referenceScenarios() []testCase {
	return []testCase{
		{"copies learn the first request, and their clients if that is wanted", everywhere, copiesLearnFirst},
		{"copies of an unknown outcome learn the first request", everywhere, unknownHasFirst},
	}
}

func copiesLearnFirst(e *environment) {
	other := payment("first")
	other.body = `{"amount":8}`
	hidden := e.serveEndpoint(endpoint{outer: withTrace, options: []core.Option{numbered()}})
	var s *service
	s = e.serveEndpoint(endpoint{
		outer:   withTrace,
		options: []core.Option{numbered(), core.WithFirstShown(true)},
		handler: func(t invocation) {
			s.refusesWith(core.ErrMismatch, other, theFirst)
			s.refusesWith(core.ErrBusy, payment("first"), theFirst)
			t.WriteHeader(http.StatusCreated)
		},
	})
	first := s.do(s.Context(), payment("first"))
	if first.status != http.StatusCreated || s.runs.Load() != 1 {
		e.Errorf("the first request: %+v", first)
	}
	s.replays(first, payment("first"))
	s.refusesWith(core.ErrMismatch, other, theFirst)
	hidden.refusesWith(core.ErrMismatch, other, "")
	for kind, n := range map[core.EventKind]int{core.Refused: 4, core.Replayed: 1} {
		for _, event := range e.events.await(e.T, kind, n) {
			if event.First != theFirst {
				e.Errorf("%v: %q", kind, event.First)
			}
		}
	}
	if n := e.events.count(core.Warned); n != 0 {
		e.Errorf("%d warnings", n)
	}
}

// refusesWith is refuses for an answer that names the first request; "": it names none.
func (s *service) refusesWith(err error, r httpRequest, first string) {
	s.Helper()
	s.wantNamed(s.refuses(err, r), first)
}

// wantNamed fails the test unless the problem document names the first request.
func (s *service) wantNamed(a httpAnswer, first string) {
	s.Helper()
	if problem, _ := problemIn([]byte(a.body)); problem.First != first || first == "" && strings.Contains(a.body, "first") {
		s.Errorf("the answer names %q, want %q: %s", problem.First, first, a.body)
	}
}

func unknownHasFirst(e *environment) {
	s := e.serveEndpoint(endpoint{
		outer:   withTrace,
		options: []core.Option{numbered(), core.WithFirstShown(true)},
		handler: func(t invocation) {
			t.attempt.Decide(core.EndUnknown)
			t.WriteHeader(http.StatusCreated)
		},
	})
	s.do(s.Context(), payment("first"))
	s.refusesWith(core.ErrOutcomeUnknown, payment("first"), theFirst)
	if event := e.events.await(e.T, core.OutcomeUnknown, 1)[0]; event.First != theFirst {
		e.Errorf("%+v", event)
	}
}

// grpcReferenceScenarios are referenceScenarios over gRPC.
func grpcReferenceScenarios() []grpcScenario {
	return []grpcScenario{
		{"copies learn the first call, and their clients if that is wanted", func(b *grpcEnvironment) {
			serve := func(handle grpcHandler, opts ...core.Option) *grpcClient {
				opts = append(opts, numbered())
				return b.serveBehind(handle, outerUnary(traceFrame), grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey(), opts...))
			}
			hidden := serve(nil)
			var p *grpcClient
			check := func(r grpcAnswer, want error, first string) {
				b.Helper()
				p.wantRefused(r, want)
				if r.first != first {
					b.Errorf("the status names %q, want %q", r.first, first)
				}
			}
			p = serve(func(context.Context, *pb.SimpleRequest) error {
				check(p.pay(), refused(core.ErrBusy, defaultRetryAfter), theFirst)
				return nil
			}, core.WithFirstShown(true))
			first := p.wantFirst(p.pay(), 1)
			p.wantReplay(first, p.pay())
			check(p.send(b.Context(), theKey, another), refused(core.ErrMismatch, 0), theFirst)
			check(hidden.send(b.Context(), theKey, another), refused(core.ErrMismatch, 0), "")
			b.wantFirsts()
		}},
	}
}

// wantFirsts fails the test unless the events of copies name the first request.
func (e *environment) wantFirsts() {
	e.Helper()
	for _, event := range slices.Concat(e.events.await(e.T, core.Replayed, 1), e.events.await(e.T, core.Refused, 1)) {
		if event.First != theFirst {
			e.Errorf("%v: %q", event.Kind, event.First)
		}
	}
}

// referredConnectCalls is the scenario over Connect.
func referredConnectCalls(e *environment, protocol connect.ClientOption) {
	send := func(body string, options ...core.Option) answer {
		say := func(context.Context, *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
			return connect.NewResponse(&pb.SimpleResponse{Username: "done"}), nil
		}
		mux := http.NewServeMux()
		mux.Handle(pb.TestService_UnaryCall_FullMethodName, connect.NewUnaryHandler(pb.TestService_UnaryCall_FullMethodName, say,
			connect.WithInterceptors(connectlock.IdempotentInterceptor(e.locks, connectlock.IdempotencyKey(), options...))))
		traced := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			withTrace(w, r)
			mux.ServeHTTP(w, r)
		})
		return listenConnect(e.T, traced, unaryCall, protocol).send(e.Context(), request{idempotencyKeys: []string{theKey}, body: body})
	}
	for range 2 {
		if got := send("7 to ada", numbered()); got.text != "done" {
			e.Errorf("%+v", got)
		}
	}
	shown := core.WithFirstShown(true)
	for _, call := range []struct {
		options []core.Option
		first   string
	}{{[]core.Option{shown}, theFirst}, {nil, ""}} {
		if got := send("7 to grace", call.options...); got.outcome != e.rowOf(refused(core.ErrMismatch, 0)) || got.first != call.first {
			e.Errorf("%+v, want one of %q", got, call.first)
		}
	}
	e.wantFirsts()
}
