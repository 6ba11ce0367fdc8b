package pipeline

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// oneReplica must acknowledge writes.
var oneReplica = command.Replicas{Count: 1, Timeout: 300 * ms}

// The reply to WAIT belongs to each command before it.
func TestReplyToWaitDecidesWhatReplicasHave(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply, wait     any
		want            any // nil means that the command is sent again
		wantUnconfirmed string
	}{
		"enough replicas":                   {reply: "ok", wait: int64(1), want: "ok"},
		"too few replicas":                  {reply: "ok", wait: int64(0), want: "ok", wantUnconfirmed: "only 0 of 1 replicas have acknowledged it"},
		"the server refuses WAIT":           {reply: "ok", wait: errRefused, want: "ok", wantUnconfirmed: errRefused.Error()},
		"no reply to WAIT":                  {reply: "ok", wait: errBroken},
		"no reply":                          {reply: errBroken, wait: errBroken},
		"an error, and no reply to WAIT":    {reply: errRefused, wait: errBroken, want: errRefused, wantUnconfirmed: errBroken.Error()},
		"an error, and enough replicas":     {reply: errRefused, wait: int64(1), want: errRefused},
		"a reply to WAIT that is no number": {reply: "ok", wait: "OK", want: "ok", wantUnconfirmed: command.UnexpectedReply("OK").Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, oneReplica, func(t *testing.T, f *fake) {
				f.sleepUntil(time.Second)
				c, begun := f.send("c", time.Second), time.Now()
				b := f.next(time.Second, "c", "wait")
				if got := fmt.Sprint(b.cmds[1].Args()); got != "[wait 1 300]" {
					t.Errorf("sent %s", got)
				}
				b.reply(test.reply, test.wait)
				if test.want == nil {
					f.next(time.Second, "again c", "wait").reply("second", int64(1))
					if got := c.wantReply(time.Second, "second"); got.Unconfirmed != nil || !got.uncertain {
						t.Errorf("%+v", got)
					}
					return
				}
				got := c.wantReply(time.Second, test.want)
				if (got.Unconfirmed == nil) != (test.wantUnconfirmed == "") || got.Unconfirmed != nil && got.Unconfirmed.Error() != test.wantUnconfirmed {
					t.Errorf("unconfirmed: %v, want %q", got.Unconfirmed, test.wantUnconfirmed)
				}
				if !got.Sent.Equal(begun) {
					t.Errorf("sent %v after the call", got.Sent.Sub(begun))
				}
			})
		})
	}
}

// Releases and aborts wait for no replicas.
func TestReleaseHasNoWait(t *testing.T) {
	t.Parallel()
	for class, waits := range map[Class]bool{Acquire: true, Renew: true, Begin: true, Commit: true, Release: false, Abort: false} {
		t.Run(fmt.Sprint(class), func(t *testing.T) {
			t.Parallel()
			inBubble(t, oneReplica, func(_ *testing.T, f *fake) {
				c, names := f.call("c", time.Second), []string{"c"}
				if waits {
					names = append(names, "wait")
				}
				f.Do(&c.Call, class)
				f.next(0, names...).replyAll(int64(1))
				c.wantReply(0, int64(1))
			})
		})
	}
}

// A client of one server follows no redirection: the server belongs to a cluster that the client
// does not know.
func TestClientOfOneServerFollowsNoRedirection(t *testing.T) {
	t.Parallel()
	inBubble(t, oneReplica, func(_ *testing.T, f *fake) {
		moved := storetest.ServerError("MOVED 1 10.0.0.2:6379")
		c := f.send("c", time.Second)
		f.next(0, "c", "wait").reply(moved, int64(1))
		f.next(0, "again c", "wait").reply(moved, int64(1))
		c.wantReply(0, moved)
	})
}

// The commands of a batch for several masters leave at the same time, with one WAIT for each
// master. The replies are delivered when all have arrived.
func TestBatchIsSentByMaster(t *testing.T) {
	t.Parallel()
	inClusterBubble(t, 3, oneReplica, func(t *testing.T, f *fakeCluster) {
		unknown := errors.New("no master")
		f.loading = make(chan struct{})
		f.sendTo(1, "first", time.Second)
		synctest.Wait() // the lane loads the slots, and the calls behind it use the same lane
		one, two, three := f.sendTo(1, "a", time.Second), f.sendTo(2, "b", time.Second), f.sendTo(1, "c", time.Second)
		lost := f.call("lost", time.Second)
		lost.Key = []byte("lost")
		f.lost["lost"] = unknown
		f.Do(&lost.Call, Acquire)
		close(f.loading)
		f.next(0, "first", "wait").reply("ok", int64(1))

		batches := f.nextAll(0, "1: a, c, wait", "2: b, wait")
		batches[0].reply("one", "three", int64(1))
		f.wantNoBatch() // the lane waits for the other master
		if len(one.settled) != 0 {
			t.Error("a call was settled before the other master had replied")
		}
		batches[1].reply("two", int64(0))
		if got := one.wantReply(0, "one"); got.Unconfirmed != nil {
			t.Errorf("%+v", got)
		}
		if got := three.wantReply(0, "three"); got.Unconfirmed != nil {
			t.Errorf("%+v", got)
		}
		var short *command.ShortfallError
		if got := two.wantReply(0, "two"); !errors.As(got.Unconfirmed, &short) {
			t.Errorf("%+v", got)
		}
		if got := lost.wantReply(0, unknown); got.uncertain || lost.sends != 2 {
			t.Errorf("%+v after %d sends", got, lost.sends)
		}
		f.wantNoBatch()
	})
}

// A real replica acknowledges the commands of a batch.
func TestReplicaAcknowledgesBatch(t *testing.T) {
	t.Parallel()
	server := redistest.StartReplicated(t)
	server.Grant(redistest.ReplicaRights)
	for _, test := range []struct {
		replicas command.Replicas
		enough   bool
	}{
		{command.Replicas{Count: 1, Timeout: storetest.Patience}, true},
		{command.Replicas{Count: 2, Timeout: 50 * ms}, false},
	} {
		s := &takeStore{t: t}
		s.pipeline = New(server.Client(t, storetest.LongReads), &s.work, test.replicas, Width)
		r := storetest.Request(storetest.Me1)
		r.Key, r.Bound = fmt.Sprint("k", test.replicas.Count), storetest.LongBound
		got := suite.Receive(t, "the call is settled", s.take(r))
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		var short *command.ShortfallError
		if !isGranted(got, r) || (got.Unconfirmed == nil) != test.enough || !test.enough && (!errors.As(got.Unconfirmed, &short) || short.Count > 1) {
			t.Errorf("%+v: %+v", test.replicas, got)
		}
	}
}
