package pipeline

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// watch makes the store watch its servers.
func watch(s *takeStore) {
	s.pipeline.Watch(func(key []byte) command.Command { return command.New(1, []any{"lrem", string(key) + ":q", 0, ""}) })
}

// unservedFor returns for how long the server of a key has not served any command.
func (s *takeStore) unservedFor(key string) time.Duration {
	since, _ := s.pipeline.Unserved([]byte("p:" + key))
	if since.IsZero() {
		return 0
	}
	return time.Since(since)
}

func TestUnservedTimeCountsFromTheFirstFailure(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		begin, end func(*redistest.Server)
		want       string // in the last failure
	}{
		"killed": {(*redistest.Server).Kill, (*redistest.Server).Restart, "connection refused"},
		"paused": {(*redistest.Server).Pause, (*redistest.Server).Resume, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, tokens := redistest.Start(t), &storetest.Tokens{}
			s := newStore(t, server.Client(t, storetest.ShortReads))
			watch(s)
			if s.mustTake(tokens.Request("before")); !s.pipeline.AllServed() {
				t.Fatal("unserved before the outage")
			}
			begun := time.Now()
			fault.begin(server)
			r := tokens.Request("k")
			r.Bound = 100 * time.Millisecond
			if got := <-s.take(r); got.Err == nil {
				t.Fatal("a command was served")
			}
			unserved := s.unservedFor("k")
			if took := time.Since(begun); unserved == 0 || unserved > took {
				t.Errorf("unserved for %v, %v after the fault", unserved, took)
			}
			suite.Eventually(t, "the time goes on without callers", func() bool { return s.unservedFor("other") > time.Second })
			suite.Eventually(t, "the last failure is known", func() bool {
				_, why := s.pipeline.Unserved([]byte("p:k"))
				return why != nil && strings.Contains(why.Error(), fault.want)
			})
			fault.end(server)
			suite.Eventually(t, "a probe ends it without callers", func() bool { return s.pipeline.AllServed() && s.unservedFor("k") == 0 })
		})
	}
}

// A master that loads its data, or was demoted, replies to each command, and serves none.
func TestServerThatServesNoClientIsUnserved(t *testing.T) {
	t.Parallel()
	server, master, tokens := redistest.Start(t), redistest.Start(t), &storetest.Tokens{}
	s := newStore(t, server.Client(t, storetest.ShortReads))
	watch(s)
	s.mustTake(tokens.Request("before"))
	host, port, _ := strings.Cut(master.Addr(), ":")
	admin := server.Client(t)
	if err := admin.Do(t.Context(), "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, "the server is read-only", func() bool {
		return (<-s.take(tokens.Request(fmt.Sprint("k", tokens.Next())))).Err != nil
	})
	suite.Eventually(t, "it stays unserved", func() bool { return s.unservedFor("k") > 500*time.Millisecond })
	if err := admin.Do(t.Context(), "replicaof", "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, "a probe ends it", s.pipeline.AllServed)
}

// An error about one command shows that the server serves commands.
func TestErrorReplyEndsUnservedTime(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		f.Watch(probeOf)
		f.health.failed(time.Now(), errBroken, []byte("c"))
		await(f, "a probe", f.batches).reply(errRefused)
		synctest.Wait()
		if !f.AllServed() {
			t.Error("unserved")
		}
	})
}

func TestUnwatchedPipelineSendsNoProbe(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		c := f.send("c", time.Second)
		f.next(0, "c").breakDown(errBroken)
		f.next(0, "again c").breakDown(errBroken)
		c.wantReply(0, errBroken)
		time.Sleep(time.Minute)
		f.wantNoBatch()
		if since, why := f.Unserved([]byte("c")); !since.IsZero() || why != nil {
			t.Errorf("unserved since %v: %v", since, why)
		}
	})
}

// A dead master of a cluster affects no key of the others.
func TestUnservedMasterOfCluster(t *testing.T) {
	t.Parallel()
	inClusterBubble(t, 2, command.Replicas{}, func(t *testing.T, f *fakeCluster) {
		f.Watch(probeOf)
		f.warm(1)
		f.warm(2)
		c := f.sendTo(1, "c", time.Second)
		f.next(0, "c").breakDown(errBroken)
		f.next(0, "again c").breakDown(errBroken)
		c.wantReply(0, errBroken)
		for node, want := range map[int]bool{1: true, 2: false} {
			if since, _ := f.Unserved([]byte(f.keyOf(node))); since.IsZero() == want {
				t.Errorf("node %d is unserved since %v", node, since)
			}
		}
	})
}

// A call that ends while the client still tries to connect fails with the reason why it
// could not connect before.
func TestRefusedConnectionIsReported(t *testing.T) {
	t.Parallel()
	server, tokens := redistest.Start(t), &storetest.Tokens{}
	s := newStore(t, server.Client(t, storetest.ShortReads))
	watch(s)
	server.Kill()
	r := tokens.Request("k") // go-redis tries to dial for 400 ms, and longer on a busy machine
	r.Bound = 2 * time.Second
	for range 2 {
		err := (<-s.take(r)).Err
		if err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), command.ErrNoReply.Error()) {
			t.Errorf("got %v", err)
		}
	}
	r.Bound = 20 * time.Millisecond
	if err := (<-s.take(r)).Err; err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("a short call after that: %v", err)
	}
}

// A command that was sent before the last reply, and fails after it, was unserved only since
// that reply.
func TestUnservedTimeBeginsAfterTheLastReply(t *testing.T) {
	t.Parallel()
	sent := time.Now()
	h, replied := &health{pipeline: &Pipeline{begun: sent.Add(-time.Hour)}}, sent.Add(time.Minute)
	h.served(replied)
	h.failed(sent, command.ErrNoReply, []byte("k"))
	if since, why := h.state(); !since.Equal(replied) || why == nil {
		t.Errorf("unserved since %v, want %v: %v", since, replied, why)
	}
}

// An error without a reply is that of the last dial, as long as no connection was made since.
func TestErrorWithoutReplyIsThatOfTheLastDial(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for name, test := range map[string]struct {
		failures []error
		want     error
	}{
		"never dialed":                     {nil, command.ErrNoReply},
		"refused":                          {[]error{refused}, refused},
		"refused, then no reply":           {[]error{refused, command.ErrNoReply}, refused},
		"refused, then a connection broke": {[]error{refused, errBroken}, command.ErrNoReply},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &health{pipeline: &Pipeline{}}
			for _, failure := range test.failures {
				h.failed(time.Now(), failure, nil)
			}
			if got := h.noReply(nil); !errors.Is(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// A call that could not connect at first, and has no reply to its second send, reports why it
// could not connect, also if the server has served another call since.
func TestCallReportsItsOwnFailureToConnect(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
		refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
		c := f.send("c", time.Second)
		f.next(0, "c").breakDown(refused)
		f.next(0, "again c")
		other := f.call("other", time.Second)
		f.Do(&other.Call, Release)
		f.next(0, "other").reply("ok")
		other.wantReply(0, "ok")
		c.wantReply(time.Second, refused)
	})
}
