package quorumstore

import "sync"

// Listen subscribes on all servers. ready is closed once a majority of the servers has
// confirmed the subscription.
func (s *Store) Listen(key string) (ready <-chan struct{}, stop func()) {
	l := &subscription{missing: s.majority, ready: make(chan struct{}), stopped: make(chan struct{})}
	for _, one := range s.servers {
		confirmed, stop := one.Listen(key)
		l.stops = append(l.stops, stop)
		select {
		case <-confirmed:
			l.confirm()
			continue
		default:
		}
		s.work.Add()
		go func() {
			defer s.work.Done()
			select {
			case <-confirmed:
				l.confirm()
			case <-l.stopped:
			}
		}()
	}
	return l.ready, l.stop
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
func (l *subscription) confirm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missing--
	if l.missing == 0 {
		close(l.ready)
	}
}

// stop ends the subscription on all servers.
func (l *subscription) stop() {
	l.once.Do(func() {
		close(l.stopped)
		for _, stop := range l.stops {
			stop()
		}
	})
}
