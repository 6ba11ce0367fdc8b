package redisstore

import (
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
)

// errNoConnection is the fault of a command for which no connection was had
// in time.
var errNoConnection = errors.New("no connection in time")

// swiftTime is how long a batch may take after which a caller leads the next.
const swiftTime = 5 * time.Millisecond

// bounded is the client of those who lead: its reads and writes end when they
// have to be let go. It shares the connections of the other one.
type bounded struct {
	rdb  redis.UniversalClient
	once sync.Once
	own  redis.UniversalClient // nil where the client knows no such thing
}

// client returns it, or nil. It is made at the first use, with the hooks that
// the other one has by then.
func (c *bounded) client() redis.UniversalClient {
	c.once.Do(func() {
		if rdb, ok := c.rdb.(*redis.Client); ok {
			c.own = rdb.WithTimeout(store.InlineTime)
		}
	})
	return c.own
}

// leader returns the client with which the caller of the exchange may run the
// batch itself, or nil. It may while the server is swift, since then it is hardly
// ever kept longer than by waiting, and there is a connection; and while it is the
// only one: see gather.
func (l *lane) leader(b *batch, x *exchange) redis.UniversalClient {
	if b == nil || !x.request.Inline || !l.swift || l.crowded || x.half < store.InlineTime {
		return nil
	}
	client := l.bounded.client()
	if client != nil {
		x.led, x.ledUntil = b, b.begun.Add(store.InlineTime)
		l.watch(x.ledUntil)
		b.by.over = b.over()
	}
	return client
}

// lead runs the batch on the goroutine of the caller, who waits for it anyhow:
// that saves two switches between goroutines, which cost more than all the rest
// that is done here. What came meanwhile is for a goroutine of the lane.
func (l *lane) lead(b *batch, client redis.UniversalClient) {
	returned := false
	defer func() {
		if !returned { // a hook of the client's has panicked
			l.mu.Lock()
			l.leave(b)
			l.start()
			l.mu.Unlock()
			l.work.Done()
		}
	}()
	more := l.turn(b, client)
	returned = true
	if more {
		go l.run(b)
		return
	}
	l.work.Done()
}

// over returns the channel that ends the wait for a connection.
func (b *batch) over() chan struct{} {
	if b.end == nil {
		b.end = make(chan struct{})
	}
	return b.end
}

// back notes that the leader, if there was one, has come back.
func (b *batch) back() {
	b.by.over = nil
	for _, s := range b.sends {
		if s.of.led == b {
			s.of.led = nil
		}
	}
}

// letGo ends the wait of a leader for a connection; that for a reply ends by
// itself. The lane does not wait for it.
func (l *lane) letGo(x *exchange) {
	if x.led != nil {
		l.leave(x.led)
		close(x.led.end)
		x.led = nil
	}
}
