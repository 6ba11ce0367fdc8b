package pubsub

// listenPlain makes all listen on the plain channel of the process, from now on:
// the servers are older than Redis 7, which introduced sharded channels. The caller
// has locked mu.
func (s *sharded) listenPlain() {
	if s.old {
		return
	}
	s.old = true
	s.onPlain()
	var ready <-chan struct{}
	var waiting []chan struct{}
	for _, c := range s.channels {
		if c.linger != nil {
			c.linger.Stop()
			continue
		}
		if !c.up { // else who listens is ready, and hears of the gap
			waiting = append(waiting, c.ready)
		}
		c.leave()
		ready, c.unlisten = s.plain.listen(c.key)
	}
	clear(s.channels)
	s.sought.empty()
	for _, conn := range s.conns {
		conn.end()
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
