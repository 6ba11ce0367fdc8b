package pipeline

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
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
		c.wantReply(0, f.loadErr)
		time.Sleep(time.Minute)
		if n := f.loads.Load(); n != 2 { // one for each send
			t.Errorf("the client loaded the slots %d times, want 2", n)
		}
	})
}
