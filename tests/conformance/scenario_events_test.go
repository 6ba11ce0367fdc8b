package conformance

import (
	"context"
	"net/http"
	"slices"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// traceKey is the key of a trace in the context of a request.
type traceKey struct{}

// theTrace is the trace of a request.
const theTrace = "4bf92f3577b34da6"

// hasTrace reports whether the context of an event is that of the request.
func hasTrace(event core.Event) bool { return event.Context().Value(traceKey{}) == theTrace }

// eventCases test what the events of a request say.
func eventCases() []testCase {
	return []testCase{
		{"events have the names of the keys, and the context of the request", everywhere, eventsOfRoute},
	}
}

// The name is that of Named of the key, or of core.WithName on the middleware.
func eventsOfRoute(e *environment) {
	s := e.serve(route{
		outer: traceFrame,
		group: []lock{{
			keys:    []key{{header: "x-key", named: "tenant"}},
			options: []core.Option{core.WithName("tenants")},
		}},
		locks:   []lock{{keys: []key{{header: "x-second", named: "user"}, {header: "x-key", named: "account"}}}},
		handler: func(c call) { c.Reply("done") },
	})
	s.wantReply(plain, "done")
	for _, kind := range []core.EventKind{core.Acquired, core.Released} {
		var names []string
		for _, event := range e.events.await(e.T, kind, 3) {
			names = append(names, event.Name)
			if !hasTrace(event) || event.Idempotent || event.Ending != 0 {
				e.Errorf("%v: attempt %t, ending %v, with the context of the request: %t", kind, event.Idempotent, event.Ending, hasTrace(event))
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, []string{"account", "tenants", "user"}) {
			e.Errorf("%v: the names are %q", kind, names)
		}
	}
	s.wantRefusal(request{second: secondKey}, e.rowOf(refused(core.ErrNoKey, 0)))
	if event := e.events.await(e.T, core.Refused, 1)[0]; event.Name != "tenants" || !hasTrace(event) || !event.Key.IsEmpty() || event.Idempotent {
		e.Errorf("a key that cannot be read: %+v", event)
	}
}

// traceFrame is a middleware that gives the context of each request a trace.
func traceFrame(f frame) {
	f.SetContext(context.WithValue(f.Context(), traceKey{}, theTrace))
	f.Next()
}

// withTrace is traceFrame for an endpoint.
func withTrace(_ http.ResponseWriter, r *http.Request) bool {
	*r = *r.WithContext(context.WithValue(r.Context(), traceKey{}, theTrace))
	return true
}

// otherName names the events of a copy. The name is no part of the key.
var otherName = core.WithName("other")

// eventScenarios test what the events of an idempotent request say.
func eventScenarios() []testCase {
	serve := func(e *environment, named, name string, options ...core.Option) {
		s := e.serveEndpoint(endpoint{outer: withTrace, named: named, options: options})
		first := s.runsWith(http.StatusCreated, payment("event"))
		s.replays(first, payment("event"))
		s.refuses(core.ErrNoKey, httpRequest{})
		checkAttemptEvents(e, name)
		e.serveEndpoint(endpoint{named: named, options: []core.Option{otherName}}).replays(first, payment("event"))
	}
	return []testCase{
		{"events have the name of the key, and say how the attempt ended", everywhere, func(e *environment) { serve(e, "payments", "payments") }},
		{"WithName names the events of an endpoint", everywhere, func(e *environment) { serve(e, "payments", "orders", core.WithName("orders")) }},
		{"its route names the events of an endpoint without a name", everywhere, func(e *environment) { serve(e, "", "POST /payments") }},
	}
}

// grpcEventScenarios are eventScenarios over gRPC.
func grpcEventScenarios() []grpcScenario {
	serve := func(b *grpcEnvironment, key grpclock.Key, name string, opts ...core.Option) {
		serve := func(opts ...core.Option) *grpcClient {
			return b.serveBehind(nil, outerUnary(traceFrame), grpclock.IdempotentUnaryServerInterceptor(b.locks, key, opts...))
		}
		p := serve(opts...)
		first := p.wantFirst(p.pay(), 1)
		p.wantReplay(first, p.pay())
		p.wantRefused(p.call(b.Context(), paid), refused(core.ErrNoKey, 0))
		checkAttemptEvents(b.environment, name)
		p.wantReplay(first, serve(otherName).pay())
	}
	key := grpclock.IdempotencyKey()
	return []grpcScenario{
		{"events have the name of the key, and say how the attempt ended", func(b *grpcEnvironment) { serve(b, key.Named("payments"), "payments") }},
		{"WithName names the events of an endpoint", func(b *grpcEnvironment) {
			serve(b, key.Named("payments"), "orders", core.WithName("orders"))
		}},
		{"its method names the events of an endpoint without a name", func(b *grpcEnvironment) {
			serve(b, key, "/grpc.testing.TestService/UnaryCall")
		}},
	}
}

// checkAttemptEvents checks the events of an attempt that was committed, of its copy, and of a
// request without a key.
func checkAttemptEvents(e *environment, name string) {
	e.Helper()
	for _, kind := range []core.EventKind{core.Acquired, core.Committed, core.Released, core.Replayed, core.Refused} {
		ending := core.Ending(0)
		if kind == core.Committed || kind == core.Released {
			ending = core.EndCommit
		}
		event := e.events.await(e.T, kind, 1)[0]
		if event.Name != name || event.Ending != ending || !event.Idempotent || !hasTrace(event) {
			e.Errorf("%v: name %q, ending %v, attempt %t, with the context of the request: %t",
				kind, event.Name, event.Ending, event.Idempotent, hasTrace(event))
		}
	}
}
