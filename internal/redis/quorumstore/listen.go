package quorumstore

import "sync"

// Listen subscribes on all servers. ready is closed once a majority of the servers has
// confirmed the subscription.
func (s *Store) Listen(key string) (ready <-chan struct{}, stop func()) {
	all := &subscription{missing: s.majority, ready: make(chan struct{}), stopped: make(chan struct{})}
	for _, one := range s.servers {
		confirmed, stop := one.Listen(key)
		all.stops = append(all.stops, stop)
		select {
		case <-confirmed:
			all.confirm()
			continue
		default:
		}
		s.work.Add()
		go func() {
			defer s.work.Done()
			select {
			case <-confirmed:
				all.confirm()
			case <-all.stopped:
			}
		}()
	}
	return all.ready, all.stop
}

// A subscription is one Listen on all servers.
type subscription struct {
	stops   []func()
	ready   chan struct{} // closed when missing is zero
	stopped chan struct{} // closed by stop
	once    sync.Once

	mu      sync.Mutex
	missing int // confirmations that ready still needs
}

// confirm counts the confirmation of a server.
func (s *subscription) confirm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing--
	if s.missing == 0 {
		close(s.ready)
	}
}

// stop ends the subscription on all servers.
func (s *subscription) stop() {
	s.once.Do(func() {
		close(s.stopped)
		for _, stop := range s.stops {
			stop()
		}
	})
}
