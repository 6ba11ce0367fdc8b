package pipeline

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Each class waits in the lane that the comments on lanes describe.
func TestClassesHaveTheirLanes(t *testing.T) {
	t.Parallel()
	l := &lanes{}
	for class, want := range map[Class][2]*lane{ // without and with replicas
		Acquire: {&l.acquires, &l.acquires},
		Renew:   {&l.releases, &l.renews},
		Release: {&l.releases, &l.releases},
		Begin:   {&l.begins, &l.begins},
		Commit:  {&l.commits, &l.commits},
		Abort:   {&l.commits, &l.releases},
	} {
		for i, acknowledged := range []bool{false, true} {
			if l.of(class, acknowledged) != want[i] {
				t.Errorf("class %d, acknowledged %v: another lane", class, acknowledged)
			}
		}
	}
	var work inflight.Counter // a batch that waits for replicas never runs inline
	p := New(redistest.Reuse(t).Client(t, storetest.Deadlines), &work, oneReplica, Width)
	for class, want := range map[Class]bool{Acquire: false, Renew: false, Begin: false, Commit: false, Release: true, Abort: true} {
		if l := p.of(class, true); l.canRunInline != want || l.acknowledged == want {
			t.Errorf("class %d: can run inline: %v, waits for replicas: %v", class, l.canRunInline, l.acknowledged)
		}
	}
}

// Lanes are idle when no call waits and no batch is in flight, also one whose calls have expired.
func TestLanesWithBatchInFlightAreNotIdle(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		if !f.idle() {
			t.Error("new lanes are not idle")
		}
		c := f.send("c", time.Second)
		f.next(0, "c")
		b := f.next(500*ms, "again c")
		c.wantReply(time.Second, command.ErrNoReply)
		if len(f.acquires.calls) != 0 || f.idle() {
			t.Error("lanes with a batch in flight are idle")
		}
		b.reply("ok")
		synctest.Wait()
		if !f.idle() {
			t.Error("lanes after their last batch are not idle")
		}
		f.acquires.calls.put(&c.Call, c.deadline)
		if f.idle() {
			t.Error("lanes with a call are idle")
		}
	})
}

// If a cluster has had many masters, the lanes of those without calls are removed.
func TestIdleMastersAreRemoved(t *testing.T) {
	t.Parallel()
	inClusterBubble(t, 3*minMasters, command.Replicas{}, func(t *testing.T, f *fakeCluster) {
		f.warm(1)
		node := 1
		send := func(busy bool) {
			t.Helper()
			node++
			f.sendTo(node, "c", time.Hour)
			b := f.next(0, "c")
			if !busy {
				b.reply("ok")
			}
			synctest.Wait()
		}
		wantMasters := func(want int) {
			t.Helper()
			if got := len(f.masters); got != want {
				t.Errorf("after a call to node %d, %d masters have lanes, want %d", node, got, want)
			}
		}
		send(true)
		for range minMasters - 2 {
			send(false)
		}
		wantMasters(minMasters)
		send(true) // the second that is busy
		wantMasters(2)
		for range minMasters - 2 {
			send(true)
		}
		wantMasters(minMasters)
		send(true) // all are busy: the limit grows
		send(false)
		wantMasters(minMasters + 2)
		send(false)
		wantMasters(minMasters + 3)
	})
}

// While the slots are unknown, each send loads them. A failure does not load them once more.
func TestUnknownSlotsAreNotReloaded(t *testing.T) {
	t.Parallel()
	inClusterBubble(t, 3, command.Replicas{}, func(t *testing.T, f *fakeCluster) {
		f.loadErr = errors.New("no node answers")
		c := f.sendTo(1, "c", time.Second)
		if got := c.wantReply(0, f.loadErr); got.uncertain {
			t.Error("uncertain, but it was never sent")
		}
		time.Sleep(time.Minute)
		f.wantNoBatch()
		if n := f.loads.Load(); n != 2 { // one for each send
			t.Errorf("the client loaded the slots %d times, want 2", n)
		}
	})
}

// Only the calls for a silent master wait, on each lane.
func TestSilentMasterDelaysNoOther(t *testing.T) {
	t.Parallel()
	for _, class := range []Class{Acquire, Renew, Release, Begin, Commit, Abort} {
		t.Run(fmt.Sprint(class), func(t *testing.T) {
			t.Parallel()
			inClusterBubble(t, 3, command.Replicas{}, func(_ *testing.T, f *fakeCluster) {
				f.warm(1)
				send := func(node int, name string) *fakeCall {
					c := f.callOf(node, name, time.Second)
					f.Do(&c.Call, class)
					return c
				}
				silent := send(1, "silent")
				f.next(0, "silent")
				for node := 2; node <= 3; node++ {
					c := send(node, "c")
					f.next(0, "c").reply("ok")
					c.wantReply(0, "ok")
				}
				f.next(500*ms, "again silent").reply("ok")
				silent.wantReply(500*ms, "ok")
			})
		})
	}
}

// The very first call is for a silent master. Once the slots are known, it delays no call for
// another master.
func TestFirstCallForSilentMasterDelaysNoOther(t *testing.T) {
	t.Parallel()
	inClusterBubble(t, 3, command.Replicas{}, func(_ *testing.T, f *fakeCluster) {
		f.sendTo(1, "silent", time.Second)
		f.next(0, "silent")
		c := f.sendTo(2, "c", time.Second)
		f.next(0, "c").reply("ok")
		c.wantReply(0, "ok")
	})
}

// A call that expires while the client loads the slots is not sent. A call that another batch has
// taken over is sent once.
func TestAbandonedBatchSendsNothingAfterLoadingSlots(t *testing.T) {
	t.Parallel()
	for name, loadedAfter := range map[string]time.Duration{"the call is sent again": 600 * ms, "the call expires": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inClusterBubble(t, 1, command.Replicas{}, func(_ *testing.T, f *fakeCluster) {
				f.loading = make(chan struct{})
				c := f.sendTo(1, "c", time.Second)
				f.sleepUntil(loadedAfter)
				close(f.loading)
				if loadedAfter < time.Second {
					f.next(loadedAfter, "again c").reply("ok")
					c.wantReply(loadedAfter, "ok")
				} else {
					c.wantReply(time.Second, command.ErrNoReply)
				}
				f.wantNoBatch()
			})
		})
	}
}

// A master that does not answer may have been replaced. The client does not notice that by itself.
func TestSlotsAreReloadedWhenMasterDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, isSilent := range map[string]bool{"connections refused": false, "no replies": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inClusterBubble(t, 1, command.Replicas{}, func(t *testing.T, f *fakeCluster) {
				f.warm(1)
				loads := f.loads.Load()
				f.sendTo(1, "c", time.Second)
				if b := f.next(0, "c"); isSilent {
					f.next(500*ms, "again c").reply("ok")
				} else {
					b.breakDown(&net.OpError{Op: "dial", Err: errBroken})
				}
				synctest.Wait()
				if n := f.loads.Load() - loads; n != 1 {
					t.Errorf("the client loaded the slots %d times, want once", n)
				}
			})
		})
	}
}
