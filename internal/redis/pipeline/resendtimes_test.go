package pipeline

import (
	"testing"
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
