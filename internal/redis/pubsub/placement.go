package pubsub

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// resolve makes a channel pending. One goroutine resolves the masters of all pending
// channels and subscribes there. It runs while there are pending channels. The caller has
// locked mu.
//
// A channel stays pending until timing.settleTime after the server's confirmation. The
// reason is that a replica confirms a subscription, too, and forwards messages, but SPUBLISH
// at the master does not count its subscribers. When the client's slot table names another
// master, the channel moves there.
func (s *shardedSubscriptions) resolve(c *shardChannel) {
	s.pending.put(c)
	if !s.isResolving {
		s.isResolving = true
		s.work.Add()
		go s.resolvePending()
		return
	}
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

func (s *shardedSubscriptions) resolvePending() {
	defer s.work.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, next, more := s.due()
		if !more {
			return
		}
		if len(due) > 0 {
			s.assignAll(due)
			continue
		}
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-s.wakeup:
		case <-s.ctx.Done():
		}
	}
}

// maxDue is how many channels due returns at most. It bounds how long due holds the mutex,
// for which a call of listen waits.
const maxDue = 256

// due returns pending channels that are due now. If none is due, next is when the first one
// is. more is false if no channel is pending.
//
// due also starts to reload a slot table that may be stale. The reload usually ends before
// the first channel that needs it is due.
func (s *shardedSubscriptions) due() (due []*shardChannel, next time.Time, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.pending) == 0 {
		s.isResolving = false
		return nil, time.Time{}, false
	}
	if s.isTableStale {
		s.isTableStale = false
		s.rdb.ReloadState(s.ctx) // does not wait for the reload
	}
	return s.pending.due(time.Now(), maxDue), s.pending[0].resolveAt, true
}

// assignAll assigns channels to their masters. After its first load of the slot table, the
// client finds the masters without I/O. If it cannot load the table, all channels wait for
// the next attempt.
func (s *shardedSubscriptions) assignAll(due []*shardChannel) {
	var master *redis.Client
	var err error
	for _, c := range due {
		if err == nil {
			master, err = s.rdb.MasterForKey(s.ctx, c.name)
		}
		s.assign(c, master, err)
	}
}

// assign subscribes to a channel at a master, if the channel is still pending. err is the
// error of the resolution.
func (s *shardedSubscriptions) assign(c *shardChannel, master *redis.Client, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.heapIndex == 0 {
		return
	}
	if err != nil {
		c.postpone(s.timing)
		s.pending.put(c)
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
	case c.isConfirmed:
		s.recheck(c)
		return
	case conn.isDialed: // the server has not replied
		conn.subscribe(c)
		s.isTableStale = true
	default:
		s.isTableStale = true // the master may be dead, as the dial takes so long
	}
	c.resolveAt = time.Now().Add(s.timing.replyTimeout)
	s.pending.put(c)
}

// recheck schedules the next resolution of a confirmed channel. After the settle time, when
// all nodes agree on the slot's master, the channel is no longer pending. The caller has
// locked mu.
func (s *shardedSubscriptions) recheck(c *shardChannel) {
	if time.Since(c.confirmedAt) > s.timing.settleTime {
		c.mayHaveMoved = false
		s.pending.remove(c)
		return
	}
	c.postpone(s.timing)
	s.pending.put(c)
	s.isTableStale = s.isTableStale || c.mayHaveMoved
}

// invalidate detaches a channel after its subscription has ended or failed, and resolves its
// master again. The caller has locked mu.
func (s *shardedSubscriptions) invalidate(c *shardChannel) {
	if c.isConfirmed {
		c.tries = 0
	}
	c.detach()
	c.mayHaveMoved = true
	c.postpone(s.timing)
	s.resolve(c)
}

// checkMasters invalidates each channel of a connection if the slot of the channel has another
// master in the client's slot table. A master behind a network partition may not have been
// told that it was replaced. checkMasters does nothing if it ran less than timing.pingAfter ago.
func (s *shardedSubscriptions) checkMasters(conn *shardConn) {
	if time.Since(conn.checkedAt) < s.timing.pingAfter {
		return
	}
	conn.checkedAt = time.Now()
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
			s.invalidate(c)
		}
		s.mu.Unlock()
	}
}
