package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
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
	dials   atomic.Int64
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
	f.Pipeline = New(rdb, &f.work, replicas)
	for _, l := range f.all() {
		l.width = 128 // CI links the tests with other widths
	}
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
func (f *fake) dial(context.Context, string, string) (net.Conn, error) {
	f.dials.Add(1)
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
				cmd.(*command.Generic).SetVal(reply)
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

// A fakeCall is a call that records what it receives. Its first command is GET with its name,
// and its second one is GET with "again <name>". Read its fields after synctest.Wait.
type fakeCall struct {
	Call
	fake     *fake
	name     string
	fallback bool // a reply "fallback" has GET with "fallback <name>" as its fallback

	settling chan struct{} // Settle waits for it, unless it is nil
	settled  chan settlement
	sends    int
	late     []Reply
	freed    int
}

// A settlement is the arguments of Settle, and its time since the test began.
type settlement struct {
	Reply
	uncertain bool
	at        time.Duration
}

// call begins a call, and sends nothing yet.
func (f *fake) call(name string, bound time.Duration) *fakeCall {
	c := &fakeCall{fake: f, name: name, settled: make(chan settlement, 10)}
	c.Begin(c, bound, 0, false)
	c.Key = []byte(name)
	return c
}

// send sends a call of the class Acquire.
func (f *fake) send(name string, bound time.Duration) *fakeCall {
	c := f.call(name, bound)
	f.Do(&c.Call, Acquire)
	return c
}

// makeFast makes the lane of the class Acquire ready for inline calls.
func (f *fake) makeFast() {
	f.t.Helper()
	f.send("fast", time.Second)
	f.next(f.elapsed(), "fast").reply("ok")
	synctest.Wait()
}

// doInline sends a call of the class Acquire, whose caller runs the batch. It returns the batch,
// and a channel that is closed when the caller returns.
func (f *fake) doInline(c *fakeCall) (b *fakeBatch, returned chan struct{}) {
	f.t.Helper()
	c.offersInline, returned = true, make(chan struct{})
	go func() {
		defer close(returned)
		f.Do(&c.Call, Acquire)
	}()
	b = f.next(f.elapsed(), c.name)
	if !isInline(b.ctx) {
		f.t.Errorf("%s does not run inline", c.name)
	}
	return b, returned
}

func (c *fakeCall) Command(sends int) command.Command {
	c.sends = sends
	name := c.name
	if sends > 1 {
		name = "again " + name
	}
	return command.New(1, []any{"get", name})
}

func (c *fakeCall) Fallback(_ command.Command, got Reply, _ int) command.Command {
	if !c.fallback || got.Value != "fallback" {
		return nil
	}
	return command.New(1, []any{"get", "fallback " + c.name})
}

func (c *fakeCall) Settle(got Reply, uncertain bool) {
	if c.settling != nil {
		<-c.settling
	}
	c.settled <- settlement{got, uncertain, c.fake.elapsed()}
}

func (c *fakeCall) Late(got Reply) { c.late = append(c.late, got) }

func (c *fakeCall) Free() { c.freed++ }

// wantReply fails the test unless the call is settled at this time with this value, or with this
// error.
func (c *fakeCall) wantReply(at time.Duration, want any) settlement {
	c.fake.t.Helper()
	got := await(c.fake, c.name+" is settled", c.settled)
	wantErr, _ := want.(error)
	if wantErr != nil {
		want = nil
	}
	if got.at != at || got.Value != want || !errors.Is(got.Err, wantErr) {
		c.fake.t.Errorf("%s: %v, %v at %v, want %v, %v at %v", c.name, got.Value, got.Err, got.at, want, wantErr, at)
	}
	return got
}
