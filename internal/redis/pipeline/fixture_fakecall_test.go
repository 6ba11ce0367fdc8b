package pipeline

import (
	"errors"
	"strings"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/script"
)

// A fakeCall is a call that records what it receives. Its first command is GET with its name,
// and its second one is GET with "again <name>". Read its fields after synctest.Wait.
type fakeCall struct {
	Call
	fake     *fake
	name     string
	fallback bool // a reply "fallback", or the error of a Joint that changed nothing, has GET with "fallback <name>" as its fallback
	isPart   bool // its first command is a command.Part with its name as its key

	settling chan struct{} // Settle waits for it, unless it is nil
	settled  chan settlement
	sends    int
	late     chan Reply
	freed    int
}

// together is the script of the Joint of fakeCalls.
var together = &script.Script{Source: "source", SHA: "together"}

// A settlement is the arguments of Settle, and its time since the test began.
type settlement struct {
	Reply
	uncertain bool
	at        time.Duration
}

// call begins a call, and sends nothing yet.
func (f *fake) call(name string, bound time.Duration) *fakeCall {
	c := &fakeCall{fake: f, name: name, settled: make(chan settlement, 10), late: make(chan Reply, 10)}
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

// startInline sends a call of the class Acquire, whose caller runs the batch. The channel receives
// what the caller recovers: nil unless a hook of the client has panicked.
func (f *fake) startInline(c *fakeCall) (recovered <-chan any) {
	c.offersInline = true
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		f.Do(&c.Call, Acquire)
	}()
	return ended
}

func (c *fakeCall) Command(sends int) command.Command {
	c.sends = sends
	name := c.name
	if c.isPart && sends == 1 {
		part := &command.Part{}
		part.Reset([]any{"evalsha", "each", 1, name}, together)
		return part
	}
	if sends > 1 {
		name = "again " + name
	}
	return command.New(1, []any{"get", name})
}

func (c *fakeCall) Fallback(_ command.Command, got Reply, _ int) command.Command {
	var refused *command.RefusedError
	isUnsent := errors.As(got.Err, &refused) || got.Err != nil && strings.HasPrefix(got.Err.Error(), "NOSCRIPT")
	if !c.fallback || got.Value != "fallback" && !isUnsent {
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

func (c *fakeCall) Late(got Reply) { c.late <- got }

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
