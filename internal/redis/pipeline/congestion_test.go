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

// congest leaves two abandoned batches more. It returns the first one, and a call of the
// second one, which begins after 20 ms. congest takes 60 ms.
func congest(f *fake) (first *fakeBatch, second *fakeCall) {
	f.t.Helper()
	begun := f.elapsed()
	short := f.send("short", 40*ms)
	first = f.next(begun, "short")
	second = f.send("second", 80*ms)
	f.next(begun+20*ms, "second", "again short")
	short.wantReply(begun+40*ms, command.ErrNoReply)
	f.sleepUntil(begun + 60*ms) // second has waited for half of its bound since its batch began
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
		f.makeFast()
		first, _ := congest(f)
		c := f.send("c", 10*time.Second)
		f.sleepUntil(70 * ms)
		first.reply("late")
		f.next(70*ms, "again second", "c").reply("ok", "ok")
		c.wantReply(70*ms, "ok")
	})
}

// Batches without replies, as on connections that died, delay no call once another batch has
// ended in time. They do not count any more, also when they end.
func TestReplyInTimeEndsCongestion(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		first, _ := congest(f)
		f.sleepUntil(time.Second)
		for _, name := range []string{"in time", "at once"} {
			c := f.send(name, time.Second)
			f.next(time.Second, name).reply("ok")
			c.wantReply(time.Second, "ok")
		}
		first.reply("late")
		synctest.Wait()
		congest(f)
		f.send("c", 10*time.Second)
		f.next(1020*ms+congestionPause, "c")
	})
}

// A batch that was not served, or served only calls that had expired, is no sign of a fast
// server.
func TestOnlyReplyInTimeEndsCongestion(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *fake, b *fakeBatch){
		"no connection": func(f *fake, b *fakeBatch) {
			b.breakDown(errBroken)
			f.next(20*ms+congestionPause, "again c").breakDown(errBroken)
		},
		"a reply to a call that expired": func(f *fake, b *fakeBatch) {
			f.sleepUntil(400 * ms)
			b.reply("ok")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
				congest(f)
				c := f.send("c", 240*ms) // until 300 ms
				end(f, f.next(20*ms+congestionPause, "c"))
				<-c.settled
				synctest.Wait()
				f.send("d", 10*time.Second)
				f.next(20*ms+2*congestionPause, "d")
			})
		})
	}
}

// A call that waits for long may be served by a server that is far from fast.
func TestSlowReplyEndsNoCongestion(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]int{congestionPause - 1: 0, congestionPause: maxAbandoned} {
		t.Run(took.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
				congest(f)
				c := f.send("c", 10*time.Second)
				b := f.next(20*ms+congestionPause, "c")
				time.Sleep(took)
				b.reply("ok")
				c.wantReply(20*ms+congestionPause+took, "ok")
				synctest.Wait()
				f.acquires.mu.Lock()
				defer f.acquires.mu.Unlock()
				if f.acquires.open != want {
					t.Errorf("%d open batches count, want %d", f.acquires.open, want)
				}
			})
		})
	}
}

// After a pause the next batch begins with the calls that have waited. A caller that comes just
// then does not run it: its own call may not be in it.
func TestCallerRunsNoBatchOfOthers(t *testing.T) {
	t.Parallel()
	for width, batches := range map[int][][]string{1: {{"other"}, {"c"}}, 2: {{"other", "c"}}} {
		t.Run(fmt.Sprint("width ", width), func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
				f.makeFast()
				l := &f.acquires
				l.mu.Lock()
				l.width = width
				other, c := f.call("other", time.Second), f.call("c", time.Second)
				c.offersInline = true
				l.enqueue(other.send())
				l.enqueue(c.send())
				b := l.next(time.Now())
				if l.mayRunInline(b, &c.Call) {
					t.Error("the caller runs it")
				}
				l.mu.Unlock()
				go l.run(b)
				for _, names := range batches {
					f.next(0, names...).replyAll("ok")
				}
				other.wantReply(0, "ok")
				c.wantReply(0, "ok")
			})
		})
	}
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

// A hook that panics ends its batch, which does not count then.
func TestPanicInHookCongestsNoLane(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		f.makeFast()
		c := f.call("c", time.Second)
		panicked := f.startInline(c)
		f.next(0, "c").panics()
		await(f, "the panic reaches the caller", panicked)
		f.next(0, "again c")
		short := f.send("short", 40*ms)
		f.next(20*ms, "short").reply("ok") // the other batch is the only abandoned one
		short.wantReply(20*ms, "ok")
	})
}
