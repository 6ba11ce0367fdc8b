package quorumstore

import "sync"

// Listen listens on all servers, and is ready once a majority knows it.
func (s *Store) Listen(key string) (ready <-chan struct{}, stop func()) {
	l := &listening{left: s.majority, heard: make(chan struct{}), over: make(chan struct{})}
	for _, one := range s.servers {
		known, end := one.Listen(key)
		l.ends = append(l.ends, end)
		select {
		case <-known:
			l.count()
			continue
		default:
		}
		s.work.Add()
		go func() {
			defer s.work.Done()
			select {
			case <-known:
				l.count()
			case <-l.over:
			}
		}()
	}
	return l.heard, l.stop
}

// listening is one Listen.
type listening struct {
	ends  []func()
	heard chan struct{} // closed when none is left
	over  chan struct{} // closed by stop
	once  sync.Once

	mu   sync.Mutex
	left int // servers that have to know it yet
}

// count counts one more server that knows it.
func (l *listening) count() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left--
	if l.left == 0 {
		close(l.heard)
	}
}

// stop ends it on all servers.
func (l *listening) stop() {
	l.once.Do(func() {
		close(l.over)
		for _, end := range l.ends {
			end()
		}
	})
}
