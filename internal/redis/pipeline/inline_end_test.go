package pipeline

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
)

// The calls of an inline batch whose hook panics, and the calls behind it, are sent at once.
func TestPanicInHookDelaysNoCall(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		f.makeFast()
		c := f.call("c", time.Second)
		panicked := f.startInline(c)
		first := f.next(0, "c")
		behind := f.send("behind", time.Second)
		first.panics()
		if await(f, "the panic reaches the caller", panicked) == nil {
			t.Error("no panic reached the caller")
		}
		f.next(0, "behind", "again c").reply("ok", "ok")
		behind.wantReply(0, "ok")
		c.wantReply(0, "ok")
	})
}

// The lane sends a call again as soon as its caller has stopped waiting for the inline batch,
// also if that batch never ends.
func TestSilentInlineBatchIsSentAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		f.makeFast()
		c := f.call("c", time.Second)
		first, returned := f.doInline(c)
		f.next(store.InlineTime, "again c")
		await(f, "the end of the context", first.ctx.Done())
		c.wantReply(time.Second, command.ErrNoReply)
		first.breakDown(first.ctx.Err())
		await(f, "the caller returns", returned)
	})
}

// Another call may abandon an inline batch. If the second send is answered, the caller returns
// without the connection that the first one waits for.
func TestInlineCallerReturnsWithSecondReply(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		f.makeFast()
		c := f.call("c", time.Second)
		first, returned := f.doInline(c)
		short := f.send("short", 20*ms)
		f.next(10*ms, "short", "again c").reply("ok", "ok")
		short.wantReply(10*ms, "ok")
		c.wantReply(10*ms, "ok")
		await(f, "the end of the context", first.ctx.Done())
		first.breakDown(first.ctx.Err())
		await(f, "the caller returns", returned)
		if f.elapsed() != 10*ms {
			f.t.Errorf("the caller returned after %v", f.elapsed())
		}
	})
}

// The reply to an inline call does not end the context of the batch.
func TestAnsweredInlineBatchKeepsItsContext(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		f.makeFast()
		c := f.call("c", time.Second)
		b, returned := f.doInline(c)
		b.reply("ok")
		c.wantReply(0, "ok")
		await(f, "the caller returns", returned)
		synctest.Wait()
		if err := b.ctx.Err(); err != nil {
			t.Errorf("the context has the error %v", err)
		}
		if c.freed != 1 {
			t.Errorf("the call was freed %d times", c.freed)
		}
	})
}

// Whether the next batch may run inline depends on how the last one went.
func TestOnlyFastRepliesMakeLaneFast(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end    func(*fakeBatch)
		isFast bool
	}{
		"a fast reply":            {func(b *fakeBatch) { b.reply("ok") }, true},
		"a reply that is slow":    {func(b *fakeBatch) { time.Sleep(fastTime); b.reply("ok") }, false},
		"a fast error of a reply": {func(b *fakeBatch) { b.reply(errRefused) }, true},
		"no connection":           {func(b *fakeBatch) { b.breakDown(errBroken) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
				f.makeFast()
				f.send("c", time.Second)
				test.end(f.next(0, "c"))
				synctest.Wait()
				f.acquires.mu.Lock()
				defer f.acquires.mu.Unlock()
				if f.acquires.wasFast != test.isFast {
					t.Errorf("the lane is fast: %v", f.acquires.wasFast)
				}
			})
		})
	}
}

// A call that waits behind an inline batch whose caller has returned survives a lost reply.
func TestCallBehindDetachedInlineBatchIsResent(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		f.makeFast()
		c := f.call("c", 10*time.Second)
		first, returned := f.doInline(c)
		behind := f.send("behind", 2*time.Second)
		await(f, "the end of the context", first.ctx.Done())
		first.breakDown(first.ctx.Err())
		await(f, "the caller returns", returned)
		f.next(store.InlineTime, "behind", "again c")
		f.next(store.InlineTime+time.Second, "again behind").reply("ok")
		behind.wantReply(store.InlineTime+time.Second, "ok")
	})
}
