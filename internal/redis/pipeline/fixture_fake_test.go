package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A fake is a Pipeline whose client connects to no server. A hook of the client passes the
// commands to the test, which replies to them. It belongs to a bubble of synctest, so a test
// knows the exact time of each send.
type fake struct {
	*Pipeline
	t       *testing.T
	work    inflight.Counter
	begun   time.Time
	batches chan *fakeBatch
	over    chan struct{} // closed at the end of the test
}

// errOver is the error of the commands that a test has left unanswered.
var errOver = errors.New("the test is over")

// The errors of commands that a test fails.
var (
	errBroken  = errors.New("the connection broke")
	errRefused = storetest.ServerError("ERR refused")
)

// inBubble runs the test in a bubble, with the Pipeline of one server.
func inBubble(t *testing.T, replicas command.Replicas, test func(t *testing.T, f *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		rdb := redis.NewClient(&redis.Options{Addr: "10.0.0.1:6379", ContextTimeoutEnabled: true, Dialer: f.dial})
		rdb.AddHook(fakeServer{fake: f, address: "10.0.0.1:6379"})
		f.open(rdb, replicas)
		test(t, f)
	})
}

func newFake(t *testing.T) *fake {
	t.Helper()
	return &fake{t: t, begun: time.Now(), batches: make(chan *fakeBatch, 1000), over: make(chan struct{})}
}

// open makes the Pipeline, which ends with the test.
func (f *fake) open(rdb redis.UniversalClient, replicas command.Replicas) {
	f.t.Helper()
	f.Pipeline = New(rdb, &f.work, replicas, Width)
	f.t.Cleanup(func() {
		close(f.over)
		if err := f.work.Wait(context.Background()); err != nil {
			f.t.Error(err)
		}
		if err := rdb.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			f.t.Error(err)
		}
		time.Sleep(time.Second) // the client of a cluster may be loading the slots
	})
}

// dial connects to nothing.
func (*fake) dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("no network")
}

// elapsed returns the time since the test began.
func (f *fake) elapsed() time.Duration { return time.Since(f.begun) }

// sleepUntil returns when the time since the begin of the test is at.
func (f *fake) sleepUntil(at time.Duration) {
	f.t.Helper()
	left := at - f.elapsed()
	if left < 0 {
		f.t.Fatalf("it is %v already, want %v", f.elapsed(), at)
	}
	time.Sleep(left)
	synctest.Wait()
}

// await returns the next value of the channel.
func await[T any](f *fake, what string, from <-chan T) (got T) {
	f.t.Helper()
	select {
	case got = <-from:
	case <-time.After(2 * time.Minute):
		f.t.Fatalf("never: %s", what)
	}
	return got
}

// next returns the next batch, which must be sent at this time, and have these commands: see
// fakeBatch.names.
func (f *fake) next(at time.Duration, names ...string) *fakeBatch {
	f.t.Helper()
	b := await(f, fmt.Sprintf("a batch of %v", names), f.batches)
	if got := b.names(); b.at != at || !slices.Equal(got, names) {
		f.t.Errorf("%v was sent at %v, want %v at %v", got, b.at, names, at)
	}
	return b
}

// wantNoBatch fails the test if a batch was sent that next has not returned.
func (f *fake) wantNoBatch() {
	f.t.Helper()
	synctest.Wait()
	select {
	case b := <-f.batches:
		f.t.Errorf("%v was sent at %v", b.names(), b.at)
	default:
	}
}

// A fakeServer is the hook that passes the commands for a server to the test.
type fakeServer struct {
	storetest.OpenCircuit
	*fake
	address string // "" for all servers of a cluster
}

// ProcessHook passes a command that is sent alone.
func (s fakeServer) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return s.run(ctx, []redis.Cmder{cmd}) }
}

// ProcessPipelineHook passes the commands of a pipeline.
func (s fakeServer) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return s.run
}

func (s fakeServer) run(ctx context.Context, cmds []redis.Cmder) error {
	b := &fakeBatch{address: s.address, ctx: ctx, cmds: slices.Clone(cmds), at: s.elapsed(), ended: make(chan func() error, 1)}
	s.batches <- b
	select {
	case end := <-b.ended:
		return end()
	case <-s.over:
		return b.fail(errOver)
	}
}

// A fakeBatch is the commands that were sent together to a server.
type fakeBatch struct {
	address string
	ctx     context.Context
	cmds    []redis.Cmder
	at      time.Duration // since the test began
	ended   chan func() error
}

// names returns the first argument of each GET, and the names of the other commands.
func (b *fakeBatch) names() (names []string) {
	for _, cmd := range b.cmds {
		if cmd.Name() == "get" {
			names = append(names, fmt.Sprint(cmd.Args()[1]))
		} else {
			names = append(names, cmd.Name())
		}
	}
	return names
}

// reply replies to each command, with an error or a value.
func (b *fakeBatch) reply(replies ...any) {
	b.ended <- func() (first error) {
		for i, cmd := range b.cmds {
			switch reply := replies[i].(type) {
			case error:
				cmd.SetErr(reply)
				if first == nil {
					first = reply
				}
			default:
				cmd.(interface{ SetVal(any) }).SetVal(reply)
			}
		}
		return first
	}
}

// replyAll replies with the value to all commands.
func (b *fakeBatch) replyAll(value any) {
	b.reply(slices.Repeat([]any{value}, len(b.cmds))...)
}

// breakDown ends the batch without any reply.
func (b *fakeBatch) breakDown(err error) { b.ended <- func() error { return b.fail(err) } }

func (b *fakeBatch) fail(err error) error {
	for _, cmd := range b.cmds {
		cmd.SetErr(err)
	}
	return err
}

// panics makes the hook of the client panic.
func (b *fakeBatch) panics() { b.ended <- func() error { panic("in a hook") } }
