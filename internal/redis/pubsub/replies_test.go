package pubsub

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A shardTalk is a connection to a master on which the test says what the master
// says. Nothing is looked for meanwhile.
type shardTalk struct {
	*sharded
	conn  *shardConn
	hints <-chan hint
}

func newShardTalk(t *testing.T) *shardTalk {
	t.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: "127.0.0.1:1"}}}}, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	s := newStore(t, rdb)
	talk := &shardTalk{sharded: s.sharded, hints: hintsOf(s)}
	talk.seeking = true // as if a goroutine did
	master, err := rdb.MasterForKey(t.Context(), storetest.LockName)
	if err != nil {
		t.Fatal(err)
	}
	talk.conn = talk.connection(master)
	return talk
}

// connection returns a connection that is never dialed.
func (s *shardTalk) connection(master *redis.Client) *shardConn {
	c := &shardConn{
		of: s.sharded, master: master, calls: make(chan struct{}, 1), end: func() {},
		channels: make(map[string]*shardChannel), reviewed: time.Now(),
	}
	s.conns[master] = c
	return c
}

// ask listens for the key k, and says on a connection that it does.
func (s *shardTalk) ask(t *testing.T, conn *shardConn) (c *shardChannel, ready <-chan struct{}) {
	t.Helper()
	ready, stop := s.listen("k")
	t.Cleanup(stop)
	s.mu.Lock()
	c = s.channels[storetest.LockName]
	conn.subscribe(c)
	s.mu.Unlock()
	s.sayAll(conn)
	return c, ready
}

// sayAll says the words on a connection.
func (s *shardTalk) sayAll(conn *shardConn) {
	for more := true; more; {
		_, more = conn.next()
	}
}

// says lets the master answer.
func (c *shardConn) says(kind string, channel *shardChannel) {
	c.take(&redis.Subscription{Kind: kind, Channel: channel.name}, nil)
}

func TestASecondAnswerMakesNothingReadyOnceMore(t *testing.T) {
	s := newShardTalk(t)
	c, ready := s.ask(t, s.conn)
	_, _ = s.ask(t, s.conn) // since the first answer was long in coming
	for range 2 {
		s.conn.says("ssubscribe", c)
		if !c.up || !isReady(ready) {
			t.Fatal("not ready")
		}
		if got := <-s.hints; got != (hint{"k", ""}) {
			t.Errorf("hint %v", got)
		}
	}
	if len(s.conn.asked) > 0 {
		t.Errorf("%d words are left", len(s.conn.asked))
	}
	s.conn.says("ssubscribe", c) // nobody has asked for it
	if len(s.hints) > 0 {
		t.Error("a hint without a question")
	}
}

// A master that a network has cut off believes that it still is one, and answers.
func TestAChannelLeavesAMasterThatIsNoneByTheTable(t *testing.T) {
	s := newShardTalk(t)
	former := redis.NewClient(&redis.Options{Addr: "127.0.0.1:2"})
	t.Cleanup(func() { _ = former.Close() })
	for _, test := range []struct {
		name  string
		conn  *shardConn
		after time.Duration // since the last look
		stays bool
	}{
		{"another master", s.connection(former), s.pace.silence, false},
		{"another master, looked at just now", s.connection(former), 0, true},
		{"its master", s.conn, s.pace.silence, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, _ := s.ask(t, test.conn)
			test.conn.says("ssubscribe", c)
			test.conn.reviewed = time.Now().Add(-test.after)
			test.conn.take(&redis.Pong{}, nil)
			if stays := c.conn == test.conn && c.up; stays != test.stays {
				t.Errorf("it stays: %v", stays)
			}
			if !test.stays && (len(test.conn.words) != 1 || test.conn.words[0].verb != unsubscribe || c.position == 0) {
				t.Errorf("words %v, sought at %d", test.conn.words, c.position)
			}
		})
	}
}

func TestWhatTheServerEndsIsLostWhereItWasUp(t *testing.T) {
	s := newShardTalk(t)
	c, ready := s.ask(t, s.conn)
	s.conn.says("sunsubscribe", c) // of a time before it was asked for
	if c.conn != s.conn || s.stale {
		t.Error("what is asked for is lost by another's end")
	}
	s.conn.says("ssubscribe", c)
	if !isReady(ready) {
		t.Error("not ready")
	}
	s.conn.says("sunsubscribe", c)
	again, stop := s.listen("k")
	defer stop()
	if c.conn != nil || c.up || !s.stale || isReady(again) {
		t.Errorf("%+v, ready %v", c, isReady(again))
	}
}

func TestARefusalOnAConnectionThatWasLeftLosesNothing(t *testing.T) {
	s := newShardTalk(t)
	moved := errors.New("MOVED 1 127.0.0.1:2")
	c, _ := s.ask(t, s.conn)
	other := s.connection(s.conn.master)
	s.mu.Lock()
	s.conn.unsubscribe(c)
	s.mu.Unlock()
	_, ready := s.ask(t, other)
	other.says("ssubscribe", c)
	s.conn.take(nil, moved)
	if c.conn != other || !c.up || !isReady(ready) || s.stale {
		t.Errorf("%+v", c)
	}
	_, _ = s.ask(t, other)
	other.take(nil, moved)
	if c.conn != nil || c.up || !s.stale {
		t.Errorf("its own refusal: %+v", c)
	}
}

func TestAnAnswerOnAConnectionThatWasLeftMakesNothingReady(t *testing.T) {
	s := newShardTalk(t)
	c, ready := s.ask(t, s.conn)
	s.mu.Lock()
	s.conn.unsubscribe(c)
	s.mu.Unlock()
	_, _ = s.ask(t, s.connection(s.conn.master))
	s.conn.says("ssubscribe", c)
	if c.up || isReady(ready) || len(s.hints) > 0 {
		t.Errorf("%+v, ready %v, %d hints", c, isReady(ready), len(s.hints))
	}
}

func TestAConnectionEndsWhereNothingIsOnIt(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *shardTalk)
		ends   bool
		stays  bool // among the connections
	}{
		"nothing":            {func(*shardTalk) {}, true, false},
		"a channel":          {func(s *shardTalk) { s.conn.channels["c"] = &shardChannel{} }, false, true},
		"a word":             {func(s *shardTalk) { s.conn.words = []word{{verb: unsubscribe}} }, false, true},
		"there is a new one": {func(s *shardTalk) { s.connection(s.conn.master) }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShardTalk(t)
			test.change(s)
			if ends := s.conn.endIdle(); ends != test.ends {
				t.Errorf("it ends: %v", ends)
			}
			if _, stays := s.conns[s.conn.master]; stays != test.stays {
				t.Errorf("one stays: %v", stays)
			}
		})
	}
}

func TestAChannelEndsWhereNobodyListens(t *testing.T) {
	s := newShardTalk(t)
	c, _ := s.ask(t, s.conn)
	s.endIdle(c)
	if s.channels[storetest.LockName] != c || c.conn != s.conn {
		t.Error("it ends although somebody listens")
	}
	former := &shardChannel{lock: c.lock, name: c.name}
	s.endIdle(former)
	if s.channels[storetest.LockName] != c || c.position == 0 {
		t.Error("it ends with one of the same name")
	}
	s.mu.Lock()
	c.count--
	s.mu.Unlock()
	s.endIdle(c)
	if len(s.channels) > 0 || c.conn != nil || c.position != 0 || len(s.conn.words) != 1 {
		t.Errorf("%+v, words %v", c, s.conn.words)
	}
	c.count++ // that is taken off at the end
}
