package pipeline

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// partsBehind sends the calls while the lane is busy, so that they leave together. It returns the batch
// before them.
func partsBehind(f *fake, calls ...*fakeCall) (before *fakeBatch) {
	f.t.Helper()
	f.send("before", time.Second)
	before = f.next(f.elapsed(), "before")
	for _, c := range calls {
		f.Do(&c.Call, Acquire)
	}
	return before
}

// newPart returns a call whose first command is a Part.
func (f *fake) newPart(name string) *fakeCall {
	c := f.call(name, time.Second)
	c.isPart = true
	return c
}

// The Parts of a batch are sent as a Joint behind its other commands.
func TestPartsAreSentTogether(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		for range 2 { // the batch is used again
			one, other, two := f.newPart("one"), f.call("other", time.Second), f.newPart("two")
			partsBehind(f, one, other, two).reply("ok")
			b := f.next(0, "other", "evalsha")
			if got := b.cmds[1].Args(); got[1] != together.SHA || len(got) != 5 || got[3] != "one" || got[4] != "two" {
				t.Errorf("sent %v", got)
			}
			b.reply("ok", []any{int64(1), int64(2)})
			one.wantReply(0, int64(1))
			other.wantReply(0, "ok")
			two.wantReply(0, command.NotDone)
		}
		f.wantNoBatch()
	})
}

// After an error of a Joint that changed nothing, each call goes on by itself, in the same send, and nothing else of
// the batch waits for it. A server that refuses a Joint gets no more. If the error may be that of a proxy, it is
// uncertain whether the Joint was applied.
func TestCallsOfFailedJointGoOnApart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply     storetest.ServerError
		then      []string // the next two Parts
		uncertain bool
	}{
		"refused":               {reply: "CROSSSLOT Keys in request don't hash to the same slot", then: []string{"evalsha", "evalsha"}},
		"lost by a proxy":       {reply: "upstream failure", then: []string{"evalsha", "evalsha"}, uncertain: true},
		"the script is unknown": {reply: "NOSCRIPT No matching script.", then: []string{"eval"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
				one, other, two := f.newPart("one"), f.call("other", time.Second), f.newPart("two")
				one.fallback, two.fallback = true, true
				partsBehind(f, one, other, two).reply("ok")
				f.next(0, "other", "evalsha").reply("ok", test.reply)
				apart := f.next(0, "fallback one", "fallback two")
				other.wantReply(0, "ok")
				apart.replyAll("apart")
				for _, c := range []*fakeCall{one, two} {
					if got := c.wantReply(0, "apart"); got.uncertain != test.uncertain || c.sends != 1 {
						t.Errorf("%s is uncertain: %v, %d sends", c.name, got.uncertain, c.sends)
					}
				}
				one, two = f.newPart("one"), f.newPart("two")
				partsBehind(f, one, two).reply("ok")
				f.next(0, test.then...)
			})
		})
	}
}

// Each call of a Joint without a reply is sent again by itself. It is uncertain whether the Joint was applied.
func TestLostJointIsSentAgainApart(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"broken": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
				one, two, resent := f.newPart("one"), f.newPart("two"), time.Duration(0)
				partsBehind(f, one, two).reply("ok")
				joint := f.next(0, "evalsha")
				if silent {
					resent = 500 * ms
				} else {
					joint.breakDown(errBroken)
				}
				f.next(resent, "again one", "again two").replyAll("ok")
				for _, c := range []*fakeCall{one, two} {
					if got := c.wantReply(resent, "ok"); !got.uncertain {
						t.Errorf("%s is certain", c.name)
					}
				}
				if !silent {
					return
				}
				joint.reply([]any{int64(1), int64(2)})
				if got := await(f, "a late reply", one.late); got.Value != int64(1) {
					t.Errorf("a late %v", got.Value)
				}
				if got := await(f, "a late reply", two.late); got.Value != command.NotDone {
					t.Errorf("a late %v", got.Value)
				}
			})
		})
	}
}

// In a cluster each Part is sent itself: a script has keys of one slot only.
func TestClusterGetsNoJoint(t *testing.T) {
	t.Parallel()
	inClusterBubble(t, 1, command.Replicas{}, func(_ *testing.T, f *fakeCluster) {
		f.send("first", time.Second)
		f.next(0, "first").reply("ok")
		one, two := f.newPart("one"), f.newPart("two")
		partsBehind(f.fake, one, two).reply("ok")
		f.next(0, "evalsha", "evalsha").replyAll(int64(1))
		one.wantReply(0, int64(1))
		two.wantReply(0, int64(1))
	})
}
