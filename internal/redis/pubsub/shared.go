package pubsub

import (
	"context"
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/inflight"
)

// listeners are the keys that this process listens for. They share one
// subscription, which lives while there are any, and a little longer, so that
// it is not set up for each wait.
type listeners struct {
	subscription
	hearer
	work *inflight.Counter

	mu     sync.Mutex
	keys   map[string]*listener // by the name of the lock
	ear    *ear                 // nil while there is no subscription
	linger *time.Timer          // ends it; nil while there are keys
	closed bool
}

// A listener is one key and how often it is listened for.
type listener struct {
	key   string
	count int
}

// An ear is one life of the subscription.
type ear struct {
	end   context.CancelFunc
	up    bool
	ready chan struct{} // closed when it is up
}

// listen adds one who listens for the key. After close it is never ready.
func (l *listeners) listen(key string) (ready <-chan struct{}, stop func()) {
	name := l.names.Lock(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return make(chan struct{}), func() {}
	}
	if l.linger != nil {
		l.linger.Stop()
		l.linger = nil
	}
	if l.ear == nil {
		l.start()
	}
	if l.keys[name] == nil {
		l.keys[name] = &listener{key: key}
	}
	l.keys[name].count++
	return l.ear.ready, sync.OnceFunc(func() { l.stop(name) })
}

// stop removes one who listens.
func (l *listeners) stop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys[name].count--
	if l.keys[name].count > 0 {
		return
	}
	delete(l.keys, name)
	if e := l.ear; e != nil && len(l.keys) == 0 {
		l.linger = time.AfterFunc(l.pace.linger, func() { l.endIdle(e) })
	}
}

// start begins a life of the subscription. The caller has locked mu.
func (l *listeners) start() {
	ctx, cancel := context.WithCancel(context.Background())
	e := &ear{end: cancel, ready: make(chan struct{})}
	l.ear = e
	l.work.Add()
	go func() {
		defer l.work.Done()
		l.run(ctx, audience{
			up:      func() { l.up(e) },
			down:    func() { l.down(e) },
			message: func(payload string) { l.message(payload, l.waited) },
		})
	}()
}

// endIdle ends a subscription that nobody needs.
func (l *listeners) endIdle(e *ear) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ear == e && len(l.keys) == 0 {
		e.end()
		l.ear = nil
	}
}

// close ends the subscription for good.
func (l *listeners) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.linger != nil {
		l.linger.Stop()
	}
	if l.ear != nil {
		l.ear.end()
		l.ear = nil
	}
}

// up hints at every key, since what was said before was missed, and then makes
// those ready who wait for it: who looks when it is ready need not look twice.
// The hints are given unlocked; whoever hears one may listen or stop.
func (l *listeners) up(e *ear) {
	l.mu.Lock()
	if l.ear != e {
		l.mu.Unlock()
		return
	}
	e.up = true
	keys := make([]string, 0, len(l.keys))
	for _, listener := range l.keys {
		keys = append(keys, listener.key)
	}
	l.mu.Unlock()
	for _, key := range keys {
		l.hint(key, "")
	}
	close(e.ready)
}

// down makes those who come now wait for the next connection.
func (l *listeners) down(e *ear) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.up {
		e.up = false
		e.ready = make(chan struct{})
	}
}

// waited returns the key of a lock's name that is listened for.
func (l *listeners) waited(name string) (key string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	listener := l.keys[name]
	if listener == nil {
		return "", false
	}
	return listener.key, true
}
