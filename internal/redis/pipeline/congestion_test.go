package pipeline

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// A server that replies to each batch, but later than the bounds of the calls, gets few batches
// at a time. Otherwise the batches wait for each other, and no reply is ever in time again.
func TestSlowServerGetsFewBatches(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		const latency, lasts = time.Second, 10 * time.Second
		open, most, batches := 0, 0, 0
		var replies []*fakeBatch // to reply to, in the order of their times
		for n := 0; f.elapsed() < lasts; n++ {
			f.send(fmt.Sprint("c", n), 100*ms)
			time.Sleep(10 * ms)
			synctest.Wait()
			for len(f.batches) > 0 {
				replies = append(replies, <-f.batches)
				open++
				batches++
			}
			for len(replies) > 0 && f.elapsed() >= replies[0].at+latency {
				replies[0].replyAll("ok")
				replies = replies[1:]
				open--
			}
			most = max(most, open)
		}
		if limit := maxAbandoned + int(latency/congestionPause) + 1; most > limit {
			t.Errorf("%d batches at a time, want at most %d", most, limit)
		}
		if least := int(lasts / latency); batches < least {
			t.Errorf("%d batches, want at least %d", batches, least)
		}
	})
}

// congest leaves two abandoned batches, of which the second began after 20 ms and has the call
// that is returned. Then 60 ms have passed.
func congest(f *fake) (first *fakeBatch, second *fakeCall) {
	f.t.Helper()
	short := f.send("short", 40*ms)
	first = f.next(0, "short")
	second = f.send("second", 80*ms)
	f.next(20*ms, "second", "again short")
	short.wantReply(40*ms, command.ErrNoReply)
	f.sleepUntil(60 * ms) // second has waited for half of its bound since its batch began
	return first, second
}

func TestCongestedLaneSendsAfterPause(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		congest(f)
		c := f.send("c", 10*time.Second)
		f.next(20*ms+congestionPause, "c").reply("ok")
		c.wantReply(20*ms+congestionPause, "ok")
	})
}

func TestCongestionEndsWithAbandonedBatch(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		first, _ := congest(f)
		c := f.send("c", 10*time.Second)
		f.sleepUntil(70 * ms)
		first.reply("late")
		f.next(70*ms, "again second", "c").reply("ok", "ok")
		c.wantReply(70*ms, "ok")
	})
}

// A call that was never sent has certainly not been applied.
func TestCallThatExpiresInQueueIsCertain(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		_, sent := congest(f)
		unsent := f.send("unsent", 100*ms)
		if got := sent.wantReply(80*ms, command.ErrNoReply); !got.uncertain {
			t.Error("certain, but it was sent once")
		}
		if got := unsent.wantReply(160*ms, command.ErrNoReply); got.uncertain {
			t.Error("uncertain, but it was never sent")
		}
		time.Sleep(time.Second)
		f.wantNoBatch()
	})
}

// A hook that panics ends its batch, which is no reason to send fewer.
func TestPanicsInHookCongestNoLane(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		for n := range 2 * maxAbandoned {
			f.makeFast()
			c, panicked := f.call(fmt.Sprint("c", n), time.Second), make(chan any, 1)
			c.offersInline = true
			go func() {
				defer func() { panicked <- recover() }()
				f.Do(&c.Call, Acquire)
			}()
			f.next(0, c.name).panics()
			await(f, "the panic reaches the caller", panicked)
			f.next(0, "again "+c.name).reply("ok")
			c.wantReply(0, "ok")
		}
	})
}
