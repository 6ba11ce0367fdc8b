package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A grpcScenario is one row of the table of idempotent unary calls. A row needs several
// processes, or a Redis that fails: the tests of grpclock have keys, fingerprints and answers.
type grpcScenario struct {
	name string
	run  func(b *grpcEnvironment)
}

func grpcScenarios() []grpcScenario {
	return slices.Concat([]grpcScenario{
		{"one of a hundred copies runs, and the others are refused with RetryInfo", copiesRefused},
		{"copies that wait in two processes get the one answer", copiesOfTwoProcesses},
		{"another message while the first call runs", otherMessageMeanwhile},
		{"after a killed process, with Rerun", processDiesRerun},
		{"the lease is lost, and no other attempt has begun", lateCommit},
		{"the lease is lost, and another attempt has run", takenOver},
		{"Redis becomes unavailable while the handler runs", redisDownAfter},
		{"the answer is sent after the commit, and not before", commitFirst},
		{"sealed answers, and a method that stores none", sealedCalls},
		{"one round trip before the handler and one after, one for a replay", roundTrips},
	}, grpcOperatorScenarios(), grpcEventScenarios(), grpcReferenceScenarios())
}

// TestGRPCScenarios runs each row on a real server, over real connections.
func TestGRPCScenarios(t *testing.T) {
	t.Parallel()
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			kind.SkipRepeats(t)
			t.Parallel()
			for _, scenario := range grpcScenarios() {
				t.Run(scenario.name, func(t *testing.T) {
					t.Parallel()
					scenario.run(&grpcEnvironment{environment: newEnvironment(t, overGRPCUnary(), redistest.Shared(t, kind))})
				})
			}
		})
	}
}

// The running call is not disturbed, and a mismatch does not wait.
func otherMessageMeanwhile(b *grpcEnvironment) {
	var p *grpcClient
	p = b.serve(func(context.Context, *pb.SimpleRequest) error {
		p.wantRefused(p.send(b.Context(), theKey, another), refused(core.ErrMismatch, 0))
		return nil
	}, core.WithWait(patience))
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
}

// killedProcess begins an attempt of theKey and never ends it. It returns when the lease has
// expired.
func (b *grpcEnvironment) killedProcess() {
	b.Helper()
	locks, proxy := b.process(core.WithTTL(shortLease), core.WithWait(patience))
	attempt, err := locks.Begin(b.Context(), unaryKey(), nil)
	if err != nil {
		b.Fatalf("Begin: %v", err)
	}
	b.Cleanup(func() {
		proxy.HealDropped()
		_ = attempt.Abort(context.Background()) // too late for an effect
	})
	proxy.Partition()
	b.awaitFree()
}

// unaryKey is the key of the attempts of theKey.
func unaryKey() string {
	key, err := core.EndpointKey("", pb.TestService_UnaryCall_FullMethodName, theKey)
	if err != nil {
		panic(err)
	}
	return key
}

// awaitFree waits until the lock of an attempt is gone. It may be called from any goroutine.
func (b *grpcEnvironment) awaitFree() {
	b.Helper()
	suite.EventuallyAnywhere(b.T, "the lock has ended", func() bool { return !b.held("i:" + unaryKey()) })
}

func processDiesRerun(b *grpcEnvironment) {
	p := b.serve(func(ctx context.Context, _ *pb.SimpleRequest) error {
		if attempt, _ := core.AttemptFromContext(ctx); attempt.Number() != 2 {
			b.Errorf("attempt %d", attempt.Number())
		}
		return nil
	}, core.WithoutFingerprint(), core.WithRerunUnknown(true))
	b.killedProcess()
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
}

// cutOff serves with a Locker that is disconnected from Redis during its first handler until
// the lease has expired. Then it calls meanwhile, and connects Redis again.
func (b *grpcEnvironment) cutOff(meanwhile func(), opts ...core.Option) *grpcClient {
	b.Helper()
	locks, proxy := b.process()
	return b.serveOn(locks, func(ctx context.Context, _ *pb.SimpleRequest) error {
		if b.runs.Load() > 1 {
			return nil
		}
		proxy.Partition()
		defer proxy.HealDropped()
		suite.ReceiveAnywhere(b.T, "the context ends", ctx.Done())
		if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLost) {
			b.Errorf("the cause is %v", cause)
		}
		b.awaitFree()
		meanwhile()
		return nil
	}, append(opts, core.WithTTL(shortLease), core.WithWait(patience))...)
}

func lateCommit(b *grpcEnvironment) {
	p := b.cutOff(func() {})
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
	b.wantRuns(1)
}

// The answer of the later attempt is stored. The attempt that lost its lease answers its own
// client only.
func takenOver(b *grpcEnvironment) {
	there := b.serve(nil, core.WithRerunUnknown(true))
	var second grpcAnswer
	here := b.cutOff(func() { second = there.wantFirst(there.pay(), 2) }, core.WithRerunUnknown(true))
	here.wantFirst(here.pay(), 1)
	there.wantReplay(second, there.pay())
	here.wantReplay(second, here.pay())
	b.wantRuns(2)
}

// The answer is sent, since the handler has run. Copies get it, too, although it is not stored
// yet. Another call with the key is to come again.
func redisDownAfter(b *grpcEnvironment) {
	locks, proxy := b.process()
	p := b.serveOn(locks, func(context.Context, *pb.SimpleRequest) error {
		proxy.Refuse(true)
		return nil
	}, core.WithTTL(shortLease), core.WithWait(patience))
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
	p.wantRefused(p.send(b.Context(), theKey, another), refused(core.ErrUnavailable, time.Second))
	proxy.Refuse(false)
	suite.Eventually(b.T, "the answer is stored", func() bool { return locks.OpenCommits().Count == 0 })
	p.wantReplay(first, p.pay())
	b.wantRuns(1)
}

// committing matches the script of a commit.
func committing(command []string) bool {
	return strings.HasPrefix(command[0], "EVAL") && slices.Contains(command, "D")
}

// No answer is sent during the commit.
func commitFirst(b *grpcEnvironment) {
	returned := make(chan struct{}, 1)
	around := func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		defer func() { returned <- struct{}{} }()
		return next(ctx, m)
	}
	p := b.serveBehind(nil, around, grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey()))
	release, held := b.proxy.HoldCommand(committing)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		p.pay()
	}()
	suite.ReceiveAnywhere(b.T, "the commit is under way", held)
	select {
	case <-returned:
		b.Error("the interceptor has returned before the commit")
		release()
	case <-time.After(200 * time.Millisecond):
		release()
		suite.ReceiveAnywhere(b.T, "the interceptor returns", returned)
	}
	suite.ReceiveAnywhere(b.T, "the client has its answer", answered)
	b.wantRuns(1)
}

func roundTrips(b *grpcEnvironment) {
	scripts := func() int {
		commands := b.proxy.Commands()
		return commands["EVALSHA"] + commands["EVAL"]
	}
	during := 0
	p := b.serve(func(context.Context, *pb.SimpleRequest) error {
		during = scripts()
		if b.runs.Load() == 1 {
			return refusedBy(codes.Aborted) // frees the key
		}
		return nil
	})
	p.pay() // loads the scripts on the master of the key
	before := scripts()
	first := p.wantFirst(p.pay(), 2)
	after := scripts()
	if during-before != 1 || after-during != 1 {
		b.Errorf("%d commands before the handler, %d after", during-before, after-during)
	}
	p.wantReplay(first, p.pay())
	if n := scripts() - after; n != 1 {
		b.Errorf("%d commands for a replay", n)
	}
}
