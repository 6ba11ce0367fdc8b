package pipeline

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// The calls that wait behind a batch leave together, at most as many as the lane is wide, and at
// most batchBytes of records. A bigger record is sent alone.
func TestWaitingCallsAreSentAsBatches(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		width int
		sizes []int // the records of the calls
		want  []int // the calls of each batch
	}{
		"width 1":          {1, make([]int, 3), []int{1, 1, 1}},
		"width 7":          {7, make([]int, 25), []int{7, 7, 7, 4}},
		"width of a store": {Width, make([]int, 200), []int{128, 72}},
		"records":          {Width, slices.Repeat([]int{batchBytes / 2}, 5), []int{2, 2, 1}},
		"a big record":     {Width, []int{1, batchBytes + 1, 1, 1}, []int{1, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
				f.acquires.width = test.width
				f.send("first", time.Second)
				first := f.next(0, "first")
				for i, size := range test.sizes {
					c := f.call(fmt.Sprint(i), time.Second)
					c.size = size
					f.Do(&c.Call, Acquire)
				}
				first.reply("ok")
				for _, want := range test.want {
					b := await(f, "a batch", f.batches)
					if len(b.cmds) != want {
						t.Errorf("a batch of %d, want %d of %v", len(b.cmds), want, test.want)
					}
					b.replyAll("ok")
				}
				f.wantNoBatch()
			})
		})
	}
}

// An error reply to one command does not fail the other commands of its batch.
func TestBadCommandFailsAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		f.send("first", time.Second)
		first := f.next(0, "first")
		a, bad, b := f.send("a", time.Second), f.send("bad", time.Second), f.send("b", time.Second)
		first.reply("ok")
		f.next(0, "a", "bad", "b").reply("one", errRefused, "two")
		a.wantReply(0, "one")
		bad.wantReply(0, errRefused)
		b.wantReply(0, "two")
	})
}

// Whoever waits for the work, as Close does, waits for the calls in the queue, too.
func TestWorkCountsQueuedCalls(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		f.send("first", time.Second)
		first, behind := f.next(0, "first"), f.send("behind", time.Second)
		waited := make(chan error, 1)
		go func() { waited <- f.work.Wait(t.Context()) }()
		first.reply("ok")
		b := f.next(0, "behind")
		synctest.Wait()
		if len(waited) > 0 {
			t.Error("the work is over before the last call was answered")
		}
		b.reply("ok")
		behind.wantReply(0, "ok")
		if err := await(f, "the work is over", waited); err != nil {
			t.Error(err)
		}
	})
}
