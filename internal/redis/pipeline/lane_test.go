package pipeline

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// A lease counts from the send of the command that granted it: not from the call, and not from the
// reply.
func TestReplyCarriesTimeOfSend(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		send func(f *fake, c *fakeCall) *fakeBatch // returns the batch that is answered
		want time.Duration                         // when the batch is sent
	}{
		"alone": {func(f *fake, c *fakeCall) *fakeBatch {
			f.Do(&c.Call, Acquire)
			return f.next(0, "c")
		}, 0},
		"inline": {func(f *fake, c *fakeCall) *fakeBatch {
			f.makeFast()
			b, _ := f.doInline(c)
			return b
		}, 0},
		"behind another batch": {func(f *fake, c *fakeCall) *fakeBatch {
			f.send("first", time.Second)
			first := f.next(0, "first")
			f.Do(&c.Call, Acquire)
			f.sleepUntil(100 * ms)
			first.reply("ok")
			return f.next(100*ms, "c")
		}, 100 * ms},
		"sent again": {func(f *fake, c *fakeCall) *fakeBatch {
			f.Do(&c.Call, Acquire)
			f.next(0, "c")
			return f.next(500*ms, "again c")
		}, 500 * ms},
		"another command, because the first reply does not decide": {func(f *fake, c *fakeCall) *fakeBatch {
			c.fallback = true
			f.Do(&c.Call, Acquire)
			b := f.next(0, "c")
			f.sleepUntil(100 * ms)
			b.reply("fallback")
			return f.next(100*ms, "fallback c")
		}, 100 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
				c := f.call("c", time.Second)
				b := test.send(f, c)
				answered := f.elapsed() + 5*ms
				f.sleepUntil(answered)
				b.reply("ok")
				if got := c.wantReply(answered, "ok"); got.Sent.Sub(f.begun) != test.want {
					t.Errorf("the reply says that it was sent at %v, want %v", got.Sent.Sub(f.begun), test.want)
				}
			})
		})
	}
}

// A cleared call keeps no references to its command and its reply, which may be big.
func TestClearedCallKeepsNoReferences(t *testing.T) {
	t.Parallel()
	x := &Call{}
	x.firstSend = send{call: x, command: command.New(1, []any{"get", "k"}), reply: Reply{Value: "big"}}
	x.Clear()
	if x.firstSend != (send{}) {
		t.Errorf("a cleared call keeps %+v", x.firstSend)
	}
}

// sendsOf returns the sends of the calls.
func sendsOf(calls ...*fakeCall) (sends []*send) {
	for _, c := range calls {
		sends = append(sends, c.send())
	}
	return sends
}

// After a batch of so many commands, the next one takes what other goroutines send meanwhile. A
// lease of it counts from the end of that wait. A full batch does not wait. An abandoned batch
// takes nothing: if it were lost, the lane would not send the calls again.
func TestBatchCoalescesAfterSharedBatch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lastSize, width int
		abandoned       bool
	}{
		"a lone call":        {1, Width, false},
		"a small batch":      {2, Width, false},
		"a shared batch":     {3, Width, false},
		"a full batch":       {3, 1, false},
		"an abandoned batch": {3, Width, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
				l, begun := &f.acquires, time.Now()
				b := &batch{sends: sendsOf(f.call("a", time.Second)), begun: begun, abandoned: test.abandoned}
				l.width, l.lastSize, l.queue = test.width, test.lastSize, sendsOf(f.call("b", time.Second))
				time.Sleep(ms)
				l.coalesce(b, 3)
				coalesces := test.lastSize == 3 && !test.abandoned && test.width > 1
				if (len(b.sends) == 2) != coalesces || (len(l.queue) == 0) != coalesces || b.begun.Equal(begun) == coalesces {
					t.Errorf("%d sends, %d in the queue, begun after %v", len(b.sends), len(l.queue), b.begun.Sub(begun))
				}
			})
		})
	}
}

// The first sends of calls that were sent again, and the sends of settled calls, are not sent. The
// others move to the front.
func TestDelayedBatchDropsSettledCalls(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		settled, resent, plain, second := f.call("settled", time.Second), f.call("resent", time.Second), f.call("plain", time.Second), f.call("second", time.Second)
		sends := sendsOf(settled, resent, plain)
		settled.settle(Reply{})
		sendsOf(resent, second) // each first send is in this batch or in an earlier one
		sends = append(sends, sendsOf(second)...)
		b := &batch{sends: slices.Clone(sends)}
		n := f.acquires.dropSettled(b)
		if n != 2 || b.sends[0] != sends[2] || b.sends[1] != sends[3] {
			t.Errorf("%d sends are left: %v", n, b.sends)
		}
		for _, s := range sends[:2] {
			if !slices.Contains(b.sends[n:], s) {
				t.Errorf("the batch has lost the send of %s", s.call.Key)
			}
		}
	})
}

// Free is called for a call whose only send was answered, and for no other call: a hook of the
// client may still use the first of two commands, and a late reply may arrive before Settle has
// returned.
func TestFreedCallHadOneSend(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		once, twice := f.send("once", time.Second), f.call("twice", time.Second)
		f.next(0, "once").reply("ok")
		synctest.Wait()
		f.Do(&twice.Call, Acquire)
		f.next(0, "twice").breakDown(errBroken)
		f.next(0, "again twice").reply("ok")
		synctest.Wait()

		first := f.send("first", 10*time.Second)
		b := f.next(0, "first")
		late, waiting := f.send("late", time.Second), f.send("waiting", 10*time.Second)
		waitingBatch := f.next(500*ms, "late", "waiting", "again first")
		late.wantReply(time.Second, command.ErrNoReply)
		waitingBatch.replyAll("ok")
		b.reply("ok")
		synctest.Wait()
		if len(late.late) != 1 || late.freed != 0 {
			t.Errorf("%d late replies, freed %d times", len(late.late), late.freed)
		}
		if once.freed != 1 || twice.freed != 0 || waiting.freed != 1 || first.freed != 0 {
			t.Errorf("freed: %d, %d, %d and %d times", once.freed, twice.freed, waiting.freed, first.freed)
		}
	})
}

// A lane that was busy keeps no references to calls, commands and replies.
func TestBusyLaneKeepsNoReferences(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		f.send("first", time.Second)
		first := f.next(0, "first")
		for _, name := range []string{"a", "b", "c"} {
			f.send(name, time.Second)
		}
		first.reply("ok")
		f.next(0, "a", "b", "c").replyAll("ok")
		synctest.Wait()
		l := &f.acquires
		b := l.spare
		if b == nil || cap(b.sends) < 3 || cap(b.cmds) < 3 || cap(b.completions) < 3 {
			t.Fatalf("the lane keeps no batch of three: %+v", b)
		}
		for i := range 3 {
			if b.sends[:3][i] != nil || b.cmds[:3][i] != nil || b.completions[:3][i].call != nil {
				t.Errorf("the batch keeps command %d", i)
			}
		}
		if calls := l.calls[:cap(l.calls)]; slices.ContainsFunc(calls, func(c check) bool { return c.call != nil }) {
			t.Errorf("the lane keeps calls: %v", calls)
		}
		if queue := l.queue[:cap(l.queue)]; slices.ContainsFunc(queue, func(s *send) bool { return s != nil }) {
			t.Errorf("the lane keeps sends: %v", queue)
		}
	})
}

// A busyLane has a batch in flight, and calls of different bounds that wait behind the batch.
type busyLane struct {
	lane
	next batch
}

func newBusyLane(tb testing.TB, calls int) *busyLane {
	tb.Helper()
	l := &busyLane{lane: lane{width: Width, inFlight: &batch{}}}
	for i := range calls {
		c := &Call{}
		c.Begin(silent{}, time.Hour+time.Duration(i%7)*time.Minute, 0, false)
		l.do(c)
	}
	tb.Cleanup(func() { l.timer.Stop() })
	return l
}

// turn settles the calls of the next batch, sends as many, and checks the deadlines.
func (l *busyLane) turn() {
	l.mu.Lock()
	l.fill(&l.next)
	for _, s := range l.next.sends {
		s.call.settle(Reply{})
		l.calls.remove(s.call)
	}
	l.mu.Unlock()
	for _, s := range l.next.sends {
		c := s.call // Begin empties s
		c.Begin(silent{}, c.deadline.Sub(c.Begun), 0, false)
		l.do(c)
	}
	l.next.reset()
	l.checkDeadlines()
}

// A silent operation ignores its replies.
type silent struct{ Operation }

func (silent) Command(int) command.Command { return nil }

// A batch costs the same however many calls wait in the lane.
func BenchmarkBusyLane(b *testing.B) {
	for _, calls := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint("calls=", calls), func(b *testing.B) {
			l := newBusyLane(b, calls)
			b.ReportAllocs()
			for b.Loop() {
				l.turn()
			}
		})
	}
}

// The queue of a lane does not grow while as many calls come as leave.
func TestQueueOfBusyLaneStaysSmall(t *testing.T) {
	t.Parallel()
	const calls = 1000
	l := newBusyLane(t, calls)
	for range 200 {
		l.turn()
	}
	if cap(l.queue) > 4*calls {
		t.Errorf("the queue of %d calls has room for %d", calls, cap(l.queue))
	}
}
