package pubsub

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// seek sees to it that the master of a channel is found, and the channel asked for
// there, until it is up, and a little longer: a replica lets us subscribe too, and
// messages reach it, but nobody counts who listens there. A master that became one
// is left as soon as the client's table of slots says so. One goroutine does that
// for all channels, while there are any to look for. The caller has locked mu.
func (s *sharded) seek(c *shardChannel) {
	s.sought.put(c)
	if !s.seeking {
		s.seeking = true
		s.work.Add()
		go s.seekAll()
		return
	}
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

func (s *sharded) seekAll() {
	defer s.work.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, next, more := s.due()
		if !more {
			return
		}
		if len(due) > 0 {
			s.place(due)
			continue
		}
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-s.poke:
		case <-s.ctx.Done():
		}
	}
}

// dueTogether is how many channels are looked for at a time. Whoever listens waits
// that long at most.
const dueTogether = 256

// due returns channels to look for now, and, if there are none, when the next
// one is due. It returns false when nothing is left to look for. The table of
// slots, if it may be stale, is loaded again in the background: before the first
// of those is due that are to be found by it, mostly.
func (s *sharded) due() (due []*shardChannel, next time.Time, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.sought) == 0 {
		s.seeking = false
		return nil, time.Time{}, false
	}
	if s.stale {
		s.stale = false
		s.rdb.ReloadState(s.ctx) // which only starts it
	}
	return s.sought.due(time.Now(), dueTogether), s.sought[0].due, true
}

// place asks for channels at their masters. The client knows those without a
// question, once it has loaded its table. If it cannot, all of them wait.
func (s *sharded) place(due []*shardChannel) {
	var master *redis.Client
	var err error
	for _, c := range due {
		if err == nil {
			master, err = s.rdb.MasterForKey(s.ctx, c.name)
		}
		s.placeAt(c, master, err)
	}
}

// placeAt asks for a channel at a master, if it is still sought.
func (s *sharded) placeAt(c *shardChannel, master *redis.Client, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.position == 0 {
		return
	}
	if err != nil {
		c.retry(s.pace)
		s.sought.put(c)
		return
	}
	conn := s.conns[master]
	if conn == nil {
		conn = s.connect(master)
	}
	switch {
	case c.conn == nil:
		conn.subscribe(c)
	case c.conn != conn:
		c.conn.unsubscribe(c)
		conn.subscribe(c)
	case c.up:
		s.lookAgain(c)
		return
	case conn.dialed: // and has not answered
		conn.subscribe(c)
		s.stale = true
	default:
		s.stale = true // a dead master does not let us connect
	}
	c.due = time.Now().Add(s.pace.answer)
	s.sought.put(c)
}

// lookAgain puts off when to look again where the master of a channel is that is
// up, until all nodes surely know. The caller has locked mu.
func (s *sharded) lookAgain(c *shardChannel) {
	if time.Since(c.since) > s.pace.doubt {
		c.lost = false
		s.sought.remove(c)
		return
	}
	c.retry(s.pace)
	s.sought.put(c)
	s.stale = s.stale || c.lost
}

// lose looks for a channel anew that is no longer, or was not, subscribed. The
// caller has locked mu.
func (s *sharded) lose(c *shardChannel) {
	if c.up {
		c.pause = s.pace.shortest
	}
	c.leave()
	c.lost = true
	c.retry(s.pace)
	s.seek(c)
}

// review loses those channels of a connection whose slot has another master now,
// by the client's table: a master that a network has cut off may not know it. Once
// in a while is enough.
func (s *sharded) review(conn *shardConn) {
	if time.Since(conn.reviewed) < s.pace.silence {
		return
	}
	conn.reviewed = time.Now()
	s.mu.Lock()
	channels := make([]*shardChannel, 0, len(conn.channels))
	for _, c := range conn.channels {
		channels = append(channels, c)
	}
	s.mu.Unlock()
	for _, c := range channels {
		master, err := s.rdb.MasterForKey(s.ctx, c.name)
		if err != nil || master == conn.master {
			continue
		}
		s.mu.Lock()
		if !s.closed && c.conn == conn {
			conn.unsubscribe(c)
			s.lose(c)
		}
		s.mu.Unlock()
	}
}
