package pipeline

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The redirections that a node sends.
const (
	movedTo2     = storetest.ServerError("MOVED 1 10.0.0.2:6379")
	askOf2       = storetest.ServerError("ASK 1 10.0.0.2:6379")
	askOf3       = storetest.ServerError("ASK 1 10.0.0.3:6379")
	movedNowhere = storetest.ServerError("MOVED 1 10.0.0.9:6379")
)

// holdNode sends a call to the node, so that the calls behind it form one batch. Reply to the call
// with reply("ok", int64(1)).
func (f *fakeCluster) holdNode(node int) *fakeBatch {
	f.t.Helper()
	f.warm(node)
	f.sendTo(node, "first", time.Minute)
	return f.next(f.elapsed(), "first", "wait")
}

// Each node that redirections name gets one batch with a WAIT of its own. The commands that it gets
// while a slot moves to it have ASKING before them.
func TestRedirectedCommandsAreSentToTheirNodes(t *testing.T) {
	t.Parallel()
	inClusterBubble(t, 3, oneReplica, func(t *testing.T, f *fakeCluster) {
		first := f.holdNode(1)
		here, moved, asked, askedToo, elsewhere := f.sendTo(1, "here", time.Second), f.sendTo(1, "moved", time.Second),
			f.sendTo(1, "asked", time.Second), f.sendTo(1, "asked too", time.Second), f.sendTo(1, "elsewhere", time.Second)
		first.reply("ok", int64(1))
		loads := f.loads.Load()
		f.next(0, "here", "moved", "asked", "asked too", "elsewhere", "wait").
			reply("at 1", movedTo2, askOf2, askOf2, askOf3, int64(1))

		batches := f.nextAll(0, "2: moved, wait", "2: asking, asked, asking, asked too, wait", "3: asking, elsewhere, wait")
		if got := f.loads.Load(); got != loads+1 {
			t.Errorf("the client loaded the slots %d times", got-loads)
		}
		batches[0].reply("at 2", int64(1))
		batches[1].reply("OK", "asked 2", "OK", "asked 2, too", int64(0))
		batches[2].reply("OK", "asked 3", int64(1))
		for _, test := range []struct {
			call      *fakeCall
			value     string
			confirmed bool
		}{{here, "at 1", true}, {moved, "at 2", true}, {asked, "asked 2", false}, {askedToo, "asked 2, too", false}, {elsewhere, "asked 3", true}} {
			got := test.call.wantReply(0, test.value)
			var short *command.ShortfallError
			if (got.Unconfirmed == nil) != test.confirmed || !test.confirmed && !errors.As(got.Unconfirmed, &short) {
				t.Errorf("%s: %+v", test.call.name, got)
			}
		}
		f.wantNoBatch()
	})
}

// A batch without redirections does not make the client load the slots.
func TestSlotsAreLoadedOnlyAfterRedirections(t *testing.T) {
	t.Parallel()
	inClusterBubble(t, 3, oneReplica, func(t *testing.T, f *fakeCluster) {
		f.warm(1)
		c := f.sendTo(1, "c", time.Second)
		f.next(0, "c", "wait").reply("ok", int64(1))
		c.wantReply(0, "ok")
		if n := f.loads.Load(); n != 1 {
			t.Errorf("the client loaded the slots %d times, want once", n)
		}
	})
}

// A redirection is followed once. After another one, and after one to a node that has no slot, the
// error counts as a lost reply.
func TestRedirectionIsFollowedOnce(t *testing.T) {
	t.Parallel()
	inClusterBubble(t, 3, oneReplica, func(_ *testing.T, f *fakeCluster) {
		f.warm(1)
		nowhere := f.sendTo(1, "nowhere", time.Second)
		f.nextAll(0, "1: nowhere, wait")[0].reply(movedNowhere, int64(1))
		f.nextAll(0, "1: again nowhere, wait")[0].reply("ok", int64(1))
		nowhere.wantReply(0, "ok")

		twice := f.sendTo(1, "twice", time.Second)
		f.nextAll(0, "1: twice, wait")[0].reply(movedTo2, int64(1))
		f.nextAll(0, "2: twice, wait")[0].reply(askOf3, int64(1))
		f.nextAll(0, "1: again twice, wait")[0].reply("ok", int64(1))
		if got := twice.wantReply(0, "ok"); !got.uncertain {
			f.t.Errorf("%+v", got)
		}
	})
}

// A call that has expired is not sent to another node.
func TestExpiredCallIsNotRedirected(t *testing.T) {
	t.Parallel()
	inClusterBubble(t, 3, oneReplica, func(t *testing.T, f *fakeCluster) {
		first := f.holdNode(1)
		expired, waiting := f.sendTo(1, "expired", time.Second), f.sendTo(1, "waiting", time.Minute)
		first.reply("ok", int64(1))
		b := f.nextAll(0, "1: expired, waiting, wait")[0]
		f.nextAll(650*ms, "1: again expired, again waiting, wait")
		expired.wantReply(time.Second, command.ErrNoReply)
		b.reply(movedTo2, movedTo2, int64(1))
		f.nextAll(time.Second, "2: waiting, wait")[0].reply("ok", int64(1))
		waiting.wantReply(time.Second, "ok")
		synctest.Wait()
		if n, late := len(expired.late), await(expired.fake, "a late reply", expired.late); n != 1 || !errors.Is(late.Err, movedTo2) {
			t.Errorf("%d late replies, the first is %+v", n, late)
		}
	})
}

// A node sends an IPv6 address without brackets. The client uses it with brackets.
func TestRedirectionHasAddressAsClientUsesIt(t *testing.T) {
	t.Parallel()
	for redirection, want := range map[string]struct {
		address    string
		asking, ok bool
	}{
		"MOVED 3999 127.0.0.1:6381":              {"127.0.0.1:6381", false, true},
		"ASK 3999 127.0.0.1:6381":                {"127.0.0.1:6381", true, true},
		"MOVED 3999 ::1:6381":                    {"[::1]:6381", false, true},
		"ASK 3999 [2001:db8::1]:6381":            {"[2001:db8::1]:6381", true, true},
		"MOVED 3999 redis.example:6381":          {"redis.example:6381", false, true},
		"MOVED":                                  {},
		"READONLY You can't write at a replica.": {},
	} {
		address, asking, ok := parseRedirection(errors.New(redirection))
		if address != want.address || asking != want.asking || ok != want.ok {
			t.Errorf("%q: %q, %v, %v", redirection, address, asking, ok)
		}
	}
}
