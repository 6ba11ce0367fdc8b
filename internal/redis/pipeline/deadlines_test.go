package pipeline

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// ms is the unit of the times of these tests.
const ms = time.Millisecond

func TestCallIsSentAgainAfterHalfOfItsBound(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		c := f.send("a", time.Second)
		f.next(0, "a")
		f.next(500*ms, "again a")
		c.wantReply(time.Second, command.ErrNoReply)
		f.wantNoBatch()
	})
}

// The timer of a lane serves the earliest of its times, whichever call comes first.
func TestLaterCallDelaysNoResend(t *testing.T) {
	t.Parallel()
	for name, bounds := range map[string][]time.Duration{
		"the short bound first": {time.Second, 10 * time.Second},
		"the long bound first":  {10 * time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
				f.send("a", bounds[0])
				f.send("b", bounds[1])
				f.next(0, "a")
				f.next(500*ms, "b", "again a")
			})
		})
	}
}

// A call that has waited for an earlier batch leaves its own batch half of the bound.
func TestCallDoesNotAbandonYoungerBatch(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		f.send("a", 10*time.Second)
		first := f.next(0, "a")
		f.sleepUntil(100 * ms)
		c := f.send("b", time.Second)
		f.sleepUntil(300 * ms)
		first.reply("ok")
		f.next(300*ms, "b")
		f.next(800*ms, "again b")
		c.wantReply(1100*ms, command.ErrNoReply)
	})
}

// A call that waits behind a batch abandons it after half of its own bound. It has waited long
// enough then, so it is sent once more only if its own batch fails.
func TestWaitingCallAbandonsOlderBatch(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		f.send("a", 10*time.Second)
		f.next(0, "a")
		f.sleepUntil(100 * ms)
		c := f.send("b", time.Second)
		f.next(600*ms, "b", "again a").breakDown(errBroken)
		f.next(600*ms, "again b")
		c.wantReply(1100*ms, command.ErrNoReply)
	})
}

// Replicas may use their whole timeout without a resend.
func TestReplicasDelayResend(t *testing.T) {
	t.Parallel()
	replicas := command.Replicas{Count: 1, Timeout: 300 * ms}
	t.Run("of a call that is sent at once", func(t *testing.T) {
		t.Parallel()
		inBubble(t, replicas, func(_ *testing.T, f *fake) {
			c := f.send("a", time.Second)
			f.next(0, "a", "wait")
			f.next(650*ms, "again a", "wait")
			c.wantReply(time.Second, command.ErrNoReply)
		})
	})
	t.Run("by a call that waits for an older batch", func(t *testing.T) {
		t.Parallel()
		inBubble(t, replicas, func(_ *testing.T, f *fake) {
			f.send("a", 10*time.Second)
			f.next(0, "a", "wait")
			f.sleepUntil(200 * ms)
			f.send("b", time.Second)
			f.next(850*ms, "b", "again a", "wait")
		})
	})
}

// Deadlines that are close together are checked together, not one by one.
func TestDeadlinesAreCheckedTogether(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		first := f.send("a", time.Second)
		second := f.send("b", time.Second+minTimerGap/2)
		first.wantReply(time.Second, command.ErrNoReply)
		second.wantReply(time.Second+minTimerGap, command.ErrNoReply)
	})
}

// An abandoned batch has calls that were sent twice, calls that are settled, and others. Only
// the others are sent again.
func TestAbandonedCallsAreSentAtMostTwice(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		twice := f.send("twice", 10*time.Second)
		f.next(0, "twice")
		settled, other := f.send("settled", time.Second), f.send("other", 10*time.Second)
		f.next(500*ms, "settled", "other", "again twice")
		settled.wantReply(time.Second, command.ErrNoReply)
		f.next(5500*ms, "again other")
		f.sleepUntil(9 * time.Second)
		if twice.sends != 2 || settled.sends != 1 || other.sends != 2 {
			t.Errorf("%d, %d and %d sends", twice.sends, settled.sends, other.sends)
		}
		f.wantNoBatch()
	})
}

// A fallback that waits in the queue is part of the first send, so the batch that had the first
// command does not cause a second send.
func TestCallWithQueuedFallbackIsNotSentAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		f.send("first", 10*time.Second)
		first := f.next(0, "first")
		slow, c := f.call("slow", 10*time.Second), f.call("c", time.Second)
		slow.settling, c.fallback = make(chan struct{}), true
		f.Do(&slow.Call, Acquire)
		f.Do(&c.Call, Acquire)
		synctest.Wait()
		first.reply("ok")
		f.next(0, "slow", "c").reply("ok", "fallback")
		b := f.next(500*ms, "fallback c") // the lane has abandoned the batch, whose goroutine waits for Settle
		close(slow.settling)
		slow.wantReply(500*ms, "ok")
		b.reply("done")
		c.wantReply(500*ms, "done")
		if c.sends != 1 {
			t.Errorf("%d sends", c.sends)
		}
		f.wantNoBatch()
	})
}

// A call that was sent twice abandons no other batch: it would gain nothing.
func TestCallSentTwiceAbandonsNoBatch(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		f.send("first", 10*time.Second)
		first := f.next(0, "first")
		long, short := f.send("long", 10*time.Second), f.send("short", time.Second)
		first.reply("ok")
		f.next(0, "long", "short")
		second := f.next(500*ms, "again long", "again short")
		short.wantReply(time.Second, command.ErrNoReply)
		f.sleepUntil(2 * time.Second)
		waiting := f.send("waiting", time.Minute)
		f.sleepUntil(8 * time.Second) // long would have abandoned the batch at 5.5 s
		second.reply("late", "late")
		long.wantReply(8*time.Second, "late")
		f.next(8*time.Second, "waiting").reply("ok")
		waiting.wantReply(8*time.Second, "ok")
	})
}

// A call that expires ends the wait of its caller for a connection.
func TestExpiredInlineCallReturns(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		f.makeFast()
		c := f.call("c", time.Second)
		b, returned := f.doInline(c)
		f.acquires.mu.Lock()
		c.deadline = time.Now() // as after a pause of the process
		f.acquires.calls[0].at = c.deadline
		f.acquires.mu.Unlock()
		f.acquires.checkDeadlines()
		c.wantReply(0, command.ErrNoReply)
		await(f, "the end of the context", b.ctx.Done())
		b.breakDown(b.ctx.Err())
		await(f, "the caller returns", returned)
		if len(c.late) != 1 || f.elapsed() != 0 {
			t.Errorf("%d late replies, after %v", len(c.late), f.elapsed())
		}
	})
}

// A fallback that was sent, and has no reply, is sent again as any command.
func TestCallWithSilentFallbackIsSentAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		c := f.call("c", time.Second)
		c.fallback = true
		f.Do(&c.Call, Acquire)
		f.next(0, "c").reply("fallback")
		f.next(0, "fallback c")
		f.next(500*ms, "again c").reply("ok")
		c.wantReply(500*ms, "ok")
	})
}

// The reply to an abandoned batch may need a fallback, which is sent at once.
func TestFallbackOfAbandonedBatchIsSent(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		c := f.call("c", 10*time.Second)
		c.fallback = true
		f.Do(&c.Call, Acquire)
		abandoned := f.next(0, "c")
		f.next(5*time.Second, "again c").breakDown(errBroken)
		f.sleepUntil(6 * time.Second)
		abandoned.reply("fallback")
		f.next(6*time.Second, "fallback c").reply("done")
		c.wantReply(6*time.Second, "done")
	})
}

// A queue of calls that are settled is empty.
func TestSettledCallsMakeNoBatch(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		c := f.call("c", time.Second)
		c.callState.settled = true
		f.acquires.enqueue(c.send())
		if b := f.acquires.next(time.Now()); b != nil || len(f.acquires.queue) != 0 {
			t.Errorf("batch %v, queue %v", b, f.acquires.queue)
		}
	})
}
