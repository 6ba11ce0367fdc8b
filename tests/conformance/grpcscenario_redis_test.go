package conformance

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// scriptsFlushed is a row that flushes the scripts of its servers.
const scriptsFlushed = "redis: the server has lost its scripts"

// grpcRedisScenarios make Redis unavailable, or lose data or replies.
func grpcRedisScenarios() []grpcScenario {
	return []grpcScenario{
		{"redis: unavailable before the call", redisDownBefore},
		{"redis: unavailable after the handler", redisDownAfter},
		{"redis: the reply to the begin is lost", func(b *grpcEnvironment) { redisReplyLost(b, "reject") }},
		{"redis: the reply to the commit is lost", func(b *grpcEnvironment) { redisReplyLost(b, "D") }},
		{scriptsFlushed, redisScriptsGone},
		{"redis: the record is deleted while the handler runs", redisRecordGone},
		{"redis: the answer is sent after the commit, and not before", redisCommitFirst},
		{"redis: one round trip before the handler and one after, one for a replay", redisRoundTrips},
		{"redis: the record has expired", redisRecordEnded},
		{"redis: the TTL of a record", redisRecordLife},
	}
}

func redisDownBefore(b *grpcEnvironment) {
	p := b.serve(nil)
	b.proxy.Refuse(true)
	p.wantRefused(p.pay(), refused(core.ErrUnavailable, time.Second))
	b.wantRuns(0)
	b.proxy.Refuse(false)
	p.wantFirst(p.pay(), 1)
}

// The answer is sent, since the handler has run. Copies get it, too, although it is not stored yet. Another
// call with the key is to come again.
func redisDownAfter(b *grpcEnvironment) {
	locks, proxy := b.process()
	p := b.serveOn(locks, func(context.Context, *pb.SimpleRequest) error {
		proxy.Refuse(true)
		return nil
	}, core.WithTTL(shortLease), core.WithWait(patience))
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
	p.wantRefused(p.send(b.Context(), theKey, &pb.SimpleRequest{ResponseSize: 8}), refused(core.ErrUnavailable, time.Second))
	proxy.Refuse(false)
	suite.Eventually(b.T, "the answer is stored", func() bool { return locks.OpenCommits().Count == 0 })
	p.wantReplay(first, p.pay())
	b.wantRuns(1)
}

// script matches a script of an attempt that has this argument.
func script(word string) func([]string) bool {
	return func(command []string) bool {
		return strings.HasPrefix(command[0], "EVAL") && slices.Contains(command, word)
	}
}

// The command is resent, and takes effect once.
func redisReplyLost(b *grpcEnvironment, word string) {
	p := b.serve(nil)
	p.wantFirst(p.pay(), 1) // loads the scripts on the master of the key
	b.forgetRecord(theKey)
	dropped := b.proxy.DropReply(script(word), redistest.CloseConn)
	first := p.wantFirst(p.pay(), 2)
	suite.ReceiveAnywhere(b.T, "the reply is lost", dropped)
	p.wantReplay(first, p.pay())
	b.wantRuns(2)
}

func redisScriptsGone(b *grpcEnvironment) {
	p := b.serve(func(ctx context.Context, _ *pb.SimpleRequest) error {
		return b.rdb.ScriptFlush(ctx).Err()
	})
	first := p.wantFirst(p.pay(), 1)
	if err := b.rdb.ScriptFlush(b.Context()).Err(); err != nil {
		b.Error(err)
	}
	p.wantReplay(first, p.pay())
}

// The commit writes the record again.
func redisRecordGone(b *grpcEnvironment) {
	p := b.serve(func(context.Context, *pb.SimpleRequest) error {
		b.forgetRecord(theKey)
		return nil
	})
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
	b.wantRuns(1)
}

// No answer is sent during the commit, even if its client has disconnected.
func redisCommitFirst(b *grpcEnvironment) {
	returned := make(chan struct{}, 1)
	around := func(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		defer func() { returned <- struct{}{} }()
		return next(ctx, m)
	}
	var cancel context.CancelFunc
	p := b.serveBehind(func(ctx context.Context, m *pb.SimpleRequest) error {
		if m.GetFillUsername() {
			cancel()
			suite.ReceiveAnywhere(b.T, "the handler receives the end of its context", ctx.Done())
		}
		return nil
	}, around, grpclock.IdempotentUnaryServerInterceptor(b.locks, grpclock.IdempotencyKey(), core.WithClientCancel(true)))
	for _, gone := range []bool{false, true} {
		release, held := b.proxy.HoldCommand(script("D"))
		var ctx context.Context
		ctx, cancel = context.WithCancel(b.Context())
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			p.send(ctx, "gone"+time.Duration(b.runs.Load()).String(), &pb.SimpleRequest{FillUsername: gone})
		}()
		suite.ReceiveAnywhere(b.T, "the commit is under way", held)
		select {
		case <-returned:
			b.Errorf("the client has gone: %v; the interceptor has returned before the commit", gone)
		case <-time.After(200 * time.Millisecond):
			release()
			suite.ReceiveAnywhere(b.T, "the interceptor returns", returned)
		}
		release()
		cancel()
		suite.ReceiveAnywhere(b.T, "the client has its answer", answered)
	}
	b.wantRuns(2)
}

func redisRoundTrips(b *grpcEnvironment) {
	scripts := func() int {
		commands := b.proxy.Commands()
		return commands["EVALSHA"] + commands["EVAL"]
	}
	var before, during int
	p := b.serve(func(context.Context, *pb.SimpleRequest) error {
		during = scripts()
		return nil
	})
	p.wantFirst(p.pay(), 1) // loads the scripts on the master of the key
	b.forgetRecord(theKey)
	before = scripts()
	first := p.wantFirst(p.pay(), 2)
	after := scripts()
	if during-before != 1 || after-during != 1 {
		b.Errorf("%d commands before the handler, %d after", during-before, after-during)
	}
	p.wantReplay(first, p.pay())
	if got := scripts() - after; got != 1 {
		b.Errorf("%d commands for a replay", got)
	}
}

func redisRecordEnded(b *grpcEnvironment) {
	p := b.serve(nil)
	first := p.wantFirst(p.pay(), 1)
	p.wantReplay(first, p.pay())
	b.forgetRecord(theKey)
	p.wantFirst(p.pay(), 2)
}

// The TTL of a record is not that of the lease, and a record always has one.
func redisRecordLife(b *grpcEnvironment) {
	life := func() time.Duration {
		d, err := b.rdb.PTTL(context.Background(), b.recordOf(theKey)).Result()
		if err != nil {
			b.Errorf("PTTL: %v", err)
		}
		return d
	}
	p := b.serve(func(context.Context, *pb.SimpleRequest) error {
		if d := life(); d < 59*time.Minute || d > time.Hour+time.Minute {
			b.Errorf("while it runs: %v", d)
		}
		return nil
	}, core.WithRetention(time.Hour), core.WithTTL(4*time.Second))
	p.wantFirst(p.pay(), 1)
	if d := life(); d < 59*time.Minute || d > time.Hour {
		b.Errorf("when it is done: %v", d)
	}
}
