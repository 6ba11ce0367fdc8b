package conformance

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/nethttplock"
)

// sealedScenarios test answers that are stored sealed, or not at all.
func sealedScenarios() []testCase {
	return []testCase{
		{"a sealed answer is replayed, and does not open on another record", everywhere, sealedAnswer},
		{"processes with other keys, and without keys", everywhere, rotatedKeys},
		{"the key service is off when a copy comes", everywhere, func(e *environment) { keyServiceOff(e, false) }},
		{"the key service hangs when a copy comes", everywhere, func(e *environment) { keyServiceOff(e, true) }},
		{"the key service is off when the answer is stored", everywhere, func(e *environment) { keyServiceOffMeanwhile(e, false) }},
		{"the key service hangs when the answer is stored", everywhere, func(e *environment) { keyServiceOffMeanwhile(e, true) }},
		{"an operator's answer is sealed", everywhere, operatorSeals},
		{"a route that stores no answer", everywhere, storesNothing},
	}
}

// sealed returns an endpoint that answers with a text, whose answers these keys seal.
func sealed(options ...core.Option) endpoint {
	return endpoint{options: options, handler: func(t invocation) {
		t.WriteHeader(http.StatusCreated)
		_, _ = t.Write([]byte(secretText))
	}}
}

// secretText is the body of an answer that must not be in Redis.
const secretText = "paid by card 4242"

// unavailable is the refusal of a request that is to come again.
var unavailable = &core.Error{Kind: core.ErrUnavailable, RetryAfter: time.Second}

func sealedAnswer(e *environment) {
	s := e.serveEndpoint(sealed(core.WithSealer(sealerOf("now"))))
	first := s.runsWith(http.StatusCreated, payment("here"))
	e.wantSealed("now", secretText)
	s.replays(first, payment("here"))
	s.replays(first, payment("here"))
	if n := e.events.count(core.Replayed); n != 2 {
		e.Errorf("%d replays were observed", n)
	}
	moved := e.stored()
	s.runsWith(http.StatusCreated, payment("there")) // with the same body
	for name := range e.stored() {
		for _, answer := range moved {
			storetest.ChangeRecord(e, e.rdb, name, map[string]string{"p": answer})
		}
	}
	s.replays(first, payment("here"))
	s.refuses(core.ErrUnreplayable, payment("there"))
	e.wantUnopened(1, core.ErrUnreplayable, "now", secretText)
	if n := e.events.count(core.Replayed); n != 3 {
		e.Errorf("%d replays were observed", n)
	}
}

// Each process seals with its first key. Unsealed answers open everywhere.
func rotatedKeys(e *environment) {
	other := *e
	other.locks = e.another()
	keys := map[string]endpoint{
		"none": sealed(), "old": sealed(core.WithSealer(sealerOf("old"))),
		"both": sealed(core.WithSealer(sealerOf("both", "old"))),
	}
	refusals := 0
	for of, writer := range map[string]string{"none": "", "old": "old", "both": "both"} {
		here := other.serveEndpoint(keys[of])
		first := here.runsWith(http.StatusCreated, payment(of))
		for by, readable := range map[string]bool{"none": of == "none", "old": of != "both", "both": true} {
			there := e.serveEndpoint(keys[by])
			if readable {
				there.replays(first, payment(of))
				continue
			}
			there.refuses(core.ErrUnreplayable, payment(of))
			refusals++
			e.wantUnopened(refusals, core.ErrUnreplayable, writer, secretText)
		}
	}
	if warned, _ := e.events.of(core.Warned); len(warned) != 2 { // one for each key that is missing somewhere
		e.Errorf("warned: %v", warned)
	}
}

func keyServiceOff(e *environment, hangs bool) {
	service, options := e.service(hangs)
	s := e.serveEndpoint(sealed(options...))
	first := s.runsWith(http.StatusCreated, payment("off"))
	service.off.Store(true)
	s.refuses(unavailable, payment("off"))
	e.wantUnopened(1, core.ErrUnavailable, "kms", secretText)
	service.off.Store(false)
	s.replays(first, payment("off"))
}

// The client gets its answer, and so do copies in this process. The answer is stored once the service is
// back.
func keyServiceOffMeanwhile(e *environment, hangs bool) {
	service, options := e.service(hangs)
	point := sealed(options...)
	handler := point.handler
	point.handler = func(t invocation) {
		service.off.Store(true)
		handler(t)
	}
	s := e.serveEndpoint(point)
	first := s.runsWith(http.StatusCreated, payment("off"))
	for _, kind := range []core.EventKind{core.Committed, core.OutcomeUnknown} {
		if event := e.events.await(e.T, kind, 1)[0]; !errors.Is(event.Err, core.ErrUnavailable) || !strings.Contains(event.Err.Error(), "sealer") {
			e.Errorf("%v: %v", kind, event.Err)
		}
	}
	s.replays(first, payment("off"))
	other := payment("off")
	other.body = "other"
	s.refuses(unavailable, other)
	there := *e
	there.locks = e.another()
	copies := there.serveEndpoint(point)
	copies.refuses(core.ErrBusy, payment("off"))
	if len(e.stored()) > 0 {
		e.Error("the answer is stored")
	}
	service.off.Store(false)
	if late := e.events.await(e.T, core.Committed, 2)[1]; late.Err != nil || !late.Repeated {
		e.Errorf("late: %+v", late)
	}
	e.wantSealed("kms", secretText)
	copies.replays(first, payment("off"))
}

func operatorSeals(e *environment) {
	point := uncertainly()
	point.options = append(point.options, core.WithSealer(sealerOf("now")))
	s := e.serveEndpoint(point)
	s.runsWith(http.StatusGatewayTimeout, payment("answered"))
	answer, err := nethttplock.NewAnswer(http.StatusCreated, http.Header{"Content-Type": {"text/plain"}}, []byte(secretText))
	if err != nil {
		e.Fatal(err)
	}
	operator := *e
	operator.locks = e.locks.With(core.WithSealer(sealerOf("now")))
	operator.resolve("answered", core.Answered(answer))
	e.wantSealed("now", secretText)
	s.replays(httpAnswer{status: http.StatusCreated, header: http.Header{"Content-Type": {"text/plain"}}, body: secretText}, payment("answered"))
}

// Also what decides to store an answer stores none.
func storesNothing(e *environment) {
	point := sealed(core.WithoutAnswer())
	handler := point.handler
	point.handler = func(t invocation) {
		t.attempt.Decide(core.EndCommit)
		handler(t)
	}
	s := e.serveEndpoint(point)
	if first := s.runsWith(http.StatusCreated, payment("once")); first.body != secretText {
		e.Errorf("the first answer is %+v", first)
	}
	s.refuses(core.ErrUnreplayable, payment("once"))
	e.seen("once", core.StateDone)
	if stored := e.stored(); len(stored) > 0 {
		e.Errorf("stored: %q", stored)
	}
}

// sealedCalls tests sealed answers on gRPC, in processes with other keys, and a method that stores none.
func sealedCalls(b *grpcEnvironment) {
	const text = "a secret of the method"
	say := func(context.Context, *pb.SimpleRequest) error { return status.Error(codes.InvalidArgument, text) }
	now := b.serve(say, core.WithSealer(sealerOf("now")))
	first := now.pay()
	b.wantSealed("now", text)
	now.wantReplay(first, now.pay())
	both := b.serve(nil, core.WithSealer(sealerOf("new", "now")))
	both.wantReplay(first, both.pay())
	for _, other := range []*grpcClient{b.serve(nil, core.WithSealer(sealerOf("new"))), b.serve(nil)} {
		other.wantRefused(other.pay(), refused(core.ErrUnreplayable, 0))
	}
	b.wantRuns(1)
	none := b.serve(nil, core.WithoutAnswer())
	none.wantFirst(none.send(b.Context(), "another", paid), 2)
	none.wantRefused(none.send(b.Context(), "another", paid), refused(core.ErrUnreplayable, 0))
}
