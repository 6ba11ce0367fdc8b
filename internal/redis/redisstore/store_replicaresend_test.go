package redisstore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A reply that is late because of the replicas does not count as lost.
func TestCommandThatWaitsForReplicasIsSentOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ wait, bound time.Duration }{
		"longer than an inline command may take": {200 * time.Millisecond, 5 * time.Second},
		"longer than half of its bound":          {2400 * time.Millisecond, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Reuse(t)
			server.Grant(redistest.ReplicaRights)
			proxy := redistest.NewProxy(t, server.Addr())
			s := newReplicatedStore(t, proxy.Client(t, storetest.Deadlines, storetest.LongReads), command.Replicas{Count: 1, Timeout: test.wait})
			if err := server.Client(t).ScriptLoad(t.Context(), s.scripts.Take.Source.(string)).Err(); err != nil {
				t.Fatal(err)
			}
			r := storetest.Request(storetest.Me1)
			r.Inline, r.Bound = true, test.bound
			begun := time.Now()
			_, err := s.Take(t.Context(), r)
			late := time.Since(begun) >= (test.bound+test.wait)/2 // a busy machine: it was resent rightly
			var short *command.ShortfallError
			if !errors.As(err, &short) {
				t.Errorf("got %v", err)
			}
			if n := proxy.Commands()["EVALSHA"]; n != 1 && !late {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}

// A resent command writes again, so that the second WAIT counts its write.
func TestResendAfterLostReplyIsAcknowledgedByReplicas(t *testing.T) {
	t.Parallel()
	sentinels := startReplicated(t)
	master := sentinels.Master()
	observer, newCommands := master.Client(t), monitor(t, master)
	proxy := redistest.NewProxy(t, master.Addr())
	s := newReplicatedStore(t, proxy.Client(t), twoReplicas)
	for _, script := range []script.Script{s.scripts.Take, s.scripts.Enqueue, s.scripts.Renew, s.scripts.Begin, s.scripts.Finish} {
		if err := observer.ScriptLoad(t.Context(), script.Source.(string)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, lost := range []string{"EVALSHA", "WAIT"} {
		for _, c := range slices.DeleteFunc(slices.Clone(replicatedCases), func(c replicatedCase) bool { return !c.waits }) {
			t.Run(c.name+", "+lost, func(t *testing.T) {
				stateOf(c.before).Put(t, observer)
				newCommands()
				dropped := proxy.DropReply(redistest.Named(lost), redistest.CloseConn)
				if err := c.run(t, s); err != nil {
					t.Fatal(err)
				}
				suite.AwaitClosed(t, "the reply is lost", dropped)
				all := newCommands()
				sent := named(all, "EVALSHA")
				if len(sent) != 2 {
					t.Fatalf("sent %d times: %v", len(sent), all)
				}
				again := all[slices.Index(all, sent[1]):]
				if !slices.Contains(again, ranCommand{sent[1].from, "WAIT"}) || len(named(again, writes...)) == 0 {
					t.Errorf("after the second send, no write and WAIT on its connection: %v", all)
				}
			})
		}
	}
}
