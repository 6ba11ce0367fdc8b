package pubsub

// fallBack moves all listeners to the shared subscription of the process for good, because
// the servers are older than Redis 7, which introduced sharded channels. The caller has
// locked mu.
func (s *shardedSubscriptions) fallBack() {
	if s.isFallback {
		return
	}
	s.isFallback = true
	s.setMode(uncounted)
	var ready <-chan struct{}
	var waiting []chan struct{}
	for _, c := range s.channels {
		if c.linger != nil {
			c.linger.Stop()
			continue
		}
		if !c.isConfirmed { // else ready is closed, and the shared subscription hints at the gap
			waiting = append(waiting, c.ready)
		}
		c.detach()
		ready, c.stopShared = s.shared.listen(c.key)
	}
	clear(s.channels)
	s.pending.removeAll()
	for _, conn := range s.conns {
		conn.cancel()
	}
	clear(s.conns)
	if len(waiting) == 0 {
		return
	}
	s.work.Add()
	go func() {
		defer s.work.Done()
		select {
		case <-ready:
		case <-s.ctx.Done():
			return
		}
		for _, w := range waiting {
			close(w)
		}
	}()
}
