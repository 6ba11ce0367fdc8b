package conformance

import (
	"errors"
	"net/http"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/nethttplock"
)

// operatorScenarios test what an operator does about an unknown outcome.
func operatorScenarios() []testCase {
	return []testCase{
		{"an operator says that a request with an unknown outcome was done", everywhere, operatorSaysDone},
		{"an operator answers a request with an unknown outcome", everywhere, operatorAnswers},
		{"an operator looks at a request that runs, and at one that is answered", everywhere, operatorLooks},
	}
}

// endpointKey returns the key of a payment, from what its client has sent.
func (e *environment) endpointKey(name string) string {
	e.Helper()
	key, err := core.EndpointKey(http.MethodPost, paymentsPath, "ada", keyPrefix+name)
	if err != nil {
		e.Fatal(err)
	}
	return key
}

// seen returns the attempt at a payment, and fails the test unless it has the state.
func (e *environment) seen(name string, state core.RecordState) core.AttemptID {
	e.Helper()
	record, err := e.locks.ReadRecord(e.Context(), e.endpointKey(name))
	if err != nil || record.State != state {
		e.Errorf("record %+v, %v, want %v", record, err, state)
	}
	return record.Attempt
}

// resolve says what became of a payment with an unknown outcome.
func (e *environment) resolve(name string, resolution core.Resolution) {
	e.Helper()
	seen := e.seen(name, core.StateUnknown)
	if err := e.locks.Resolve(e.Context(), e.endpointKey(name), resolution, seen); err != nil {
		e.Errorf("Resolve: %v", err)
	}
}

func operatorSaysDone(e *environment) {
	s := e.serveEndpoint(uncertainly())
	s.runsWith(http.StatusGatewayTimeout, payment("done"))
	e.resolve("done", core.Done())
	s.refuses(core.ErrUnreplayable, payment("done"))
	other := payment("done")
	other.body = "another"
	s.refuses(core.ErrMismatch, other)
	e.seen("done", core.StateDone)
}

// The copies get the answer under the same filter as that of a handler.
func operatorAnswers(e *environment) {
	s := e.serveEndpoint(uncertainly())
	s.runsWith(http.StatusGatewayTimeout, payment("answered"))
	header := http.Header{"Location": {"/payments/7"}, "Content-Type": {"application/json"}, "X-Own": {"own"}, "Set-Cookie": {"a=b"}}
	answer, err := nethttplock.NewAnswer(http.StatusCreated, header, []byte(`{"id":7}`), "X-Own")
	if err != nil {
		e.Fatal(err)
	}
	e.resolve("answered", core.Answered(answer))
	header.Del("Set-Cookie")
	want := httpAnswer{status: http.StatusCreated, header: header, body: `{"id":7}`}
	s.replays(want, payment("answered"))
	s.replays(want, payment("answered"))
	e.seen("answered", core.StateAnswered)
}

func operatorLooks(e *environment) {
	s := e.serveEndpoint(endpoint{handler: func(t invocation) {
		key := e.endpointKey("looks")
		seen := e.seen("looks", core.StateRunning)
		for _, resolution := range []core.Resolution{core.NotDone(), core.Done()} {
			if err := e.locks.Resolve(e.Context(), key, resolution, seen); !errors.Is(err, core.ErrBusy) {
				e.Errorf("Resolve of a request that runs: %v", err)
			}
		}
		t.WriteHeader(http.StatusCreated)
	}})
	first := s.runsWith(http.StatusCreated, payment("looks"))
	seen := e.seen("looks", core.StateAnswered)
	if err := e.locks.Resolve(e.Context(), e.endpointKey("looks"), core.NotDone(), seen); !errors.Is(err, core.ErrChanged) {
		e.Errorf("Resolve of a request with an answer: %v", err)
	}
	s.replays(first, payment("looks"))
}

// grpcOperatorScenarios test what an operator says of a call whose process was killed.
func grpcOperatorScenarios() (rows []grpcScenario) {
	answer := func(b *grpcEnvironment, m *pb.SimpleResponse, err error) core.Resolution {
		answer, err := grpclock.NewAnswer(m, err)
		if err != nil {
			b.Fatal(err)
		}
		return core.Answered(answer)
	}
	for name, row := range map[string]struct {
		resolution func(b *grpcEnvironment) core.Resolution
		check      func(p *grpcClient, r grpcAnswer) // of a copy
	}{
		"runs again": {
			func(*grpcEnvironment) core.Resolution { return core.NotDone() },
			func(p *grpcClient, r grpcAnswer) { p.wantReplay(p.wantFirst(r, 1), p.pay()) },
		},
		"was done": {
			func(*grpcEnvironment) core.Resolution { return core.Done() },
			func(p *grpcClient, r grpcAnswer) { p.wantRefused(r, refused(core.ErrUnreplayable, 0)) },
		},
		"gets a message": {
			func(b *grpcEnvironment) core.Resolution {
				return answer(b, &pb.SimpleResponse{Username: "by hand"}, nil)
			},
			func(p *grpcClient, r grpcAnswer) {
				if !r.replayed() || r.text != "by hand" {
					p.b.Errorf("the copy got %+v", r)
				}
			},
		},
		"gets a status": {
			func(b *grpcEnvironment) core.Resolution { return answer(b, nil, refusedBy(codes.FailedPrecondition)) },
			func(p *grpcClient, r grpcAnswer) {
				if !r.replayed() || r.status != int(codes.FailedPrecondition) || r.code != "" {
					p.b.Errorf("the copy got %+v", r)
				}
			},
		},
	} {
		rows = append(rows, grpcScenario{"after a killed process an operator says that the call " + name, func(b *grpcEnvironment) {
			p := b.serve(nil, core.WithoutFingerprint(), core.WithWait(patience))
			b.killedProcess()
			for range 2 {
				p.wantRefused(p.pay(), refused(core.ErrOutcomeUnknown, 0))
			}
			b.wantRuns(0)
			key, err := core.EndpointKey("", pb.TestService_UnaryCall_FullMethodName, theKey)
			if err != nil {
				b.Fatal(err)
			}
			record, err := b.locks.ReadRecord(b.Context(), key)
			if err != nil {
				b.Fatal(err)
			}
			if err := b.locks.Resolve(b.Context(), key, row.resolution(b), record.Attempt); err != nil {
				b.Errorf("Resolve: %v", err)
			}
			row.check(p, p.pay())
		}})
	}
	return rows
}
