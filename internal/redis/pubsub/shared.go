package pubsub

import (
	"context"
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/inflight"
)

// sharedSubscription is the subscription to the channel of the process. All keys with a
// listener share it. It outlives the last listener by timing.linger, because the next
// request that waits then needs no new subscription.
type sharedSubscription struct {
	subscription
	hintDecoder
	work *inflight.Counter

	mu      sync.Mutex
	keys    map[string]*sharedKey // by the name of the lock
	session *session              // nil without a subscription
	linger  *time.Timer           // ends the session; nil while there are keys
	closed  bool
}

// A sharedKey is a key and the number of its listeners.
type sharedKey struct {
	key       string
	listeners int
}

// A session is the subscription from the first listener until the end of the linger time.
// It may have several connections, one after the other.
type session struct {
	cancel      context.CancelFunc
	isConfirmed bool          // by the server, on the current connection
	ready       chan struct{} // closed when the server has confirmed the subscription
}

// listen adds a listener for the key. After close, ready is never closed.
func (s *sharedSubscription) listen(key string) (ready <-chan struct{}, stop func()) {
	name := s.names.Lock(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return make(chan struct{}), func() {}
	}
	if s.linger != nil {
		s.linger.Stop()
		s.linger = nil
	}
	if s.session == nil {
		s.startSession()
	}
	if s.keys[name] == nil {
		s.keys[name] = &sharedKey{key: key}
	}
	s.keys[name].listeners++
	return s.session.ready, sync.OnceFunc(func() { s.stop(name) })
}

// stop removes a listener.
func (s *sharedSubscription) stop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[name].listeners--
	if s.keys[name].listeners > 0 {
		return
	}
	delete(s.keys, name)
	if current := s.session; current != nil && len(s.keys) == 0 {
		s.linger = time.AfterFunc(s.timing.linger, func() { s.endIdle(current) })
	}
}

// startSession starts a session and its goroutine. The caller has locked mu.
func (s *sharedSubscription) startSession() {
	ctx, cancel := context.WithCancel(context.Background())
	started := &session{cancel: cancel, ready: make(chan struct{})}
	s.session = started
	s.work.Add()
	go func() {
		defer s.work.Done()
		s.run(ctx, callbacks{
			confirmed: func() { s.confirm(started) },
			ended:     func() { s.disconnect(started) },
			message:   func(payload string) { s.decode(payload, s.keyOf) },
		})
	}()
}

// endIdle ends a session without keys.
func (s *sharedSubscription) endIdle(idle *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == idle && len(s.keys) == 0 {
		idle.cancel()
		s.session = nil
	}
}

// close ends the session. No session starts after it.
func (s *sharedSubscription) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.linger != nil {
		s.linger.Stop()
	}
	if s.session != nil {
		s.session.cancel()
		s.session = nil
	}
}

// confirm handles the server's confirmation. It first hints at every key, because earlier
// messages were missed. Then it closes ready, so that a listener that checks its key when
// it is ready checks the key only once. confirm calls the hint function without the mutex,
// because the hint function may call listen and stop.
func (s *sharedSubscription) confirm(current *session) {
	s.mu.Lock()
	if s.session != current {
		s.mu.Unlock()
		return
	}
	current.isConfirmed = true
	keys := make([]string, 0, len(s.keys))
	for _, shared := range s.keys {
		keys = append(keys, shared.key)
	}
	s.mu.Unlock()
	for _, key := range keys {
		s.hint(key, "")
	}
	close(current.ready)
}

// disconnect handles the end of a connection: later listeners wait for the next connection.
func (s *sharedSubscription) disconnect(current *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if current.isConfirmed {
		current.isConfirmed = false
		current.ready = make(chan struct{})
	}
}

// keyOf returns the key of a lock's name. ok is false if the key has no listener.
func (s *sharedSubscription) keyOf(name string) (key string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shared := s.keys[name]
	if shared == nil {
		return "", false
	}
	return shared.key, true
}
