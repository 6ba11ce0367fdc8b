package redisstore

import (
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
)

// swiftTime is how long the last batch may have taken where a caller is to lead the
// next one.
const swiftTime = 5 * time.Millisecond

// canLead reports whether the client ends its reads and writes at the deadline
// of a context. Otherwise a leader could not be let go in time.
func canLead(rdb redis.UniversalClient) bool {
	switch client := rdb.(type) {
	case *redis.Client:
		o := client.Options()
		return o.ContextTimeoutEnabled && haveDeadlines(o.ReadTimeout, o.WriteTimeout)
	case *redis.ClusterClient:
		o := client.Options()
		return o.ContextTimeoutEnabled && haveDeadlines(o.ReadTimeout, o.WriteTimeout)
	default:
		return false
	}
}

// haveDeadlines reports whether reads and writes with these timeouts end at a
// deadline: a negative timeout is one without.
func haveDeadlines(read, write time.Duration) bool { return read >= 0 && write >= 0 }

// leads reports whether the caller of the exchange runs the batch itself. It may
// while the server is swift, since then it is hardly ever kept longer than by
// waiting, and there is a connection; and while it is the only one: see gather.
func (l *lane) leads(b *batch, x *call) bool {
	if b == nil || !l.leadable || !x.inline || !l.swift || l.crowded || x.half < store.InlineTime {
		return false
	}
	x.led, x.ledUntil = b, b.begun.Add(store.InlineTime)
	l.watch(x.ledUntil)
	b.leash = &leash{x.ledUntil, make(chan struct{})}
	return true
}

// lead runs the batch on the goroutine of the caller, who waits for it anyhow:
// that saves two switches between goroutines, which cost more than all the rest
// that is done here.
func (l *lane) lead(b *batch) {
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
	more := l.turn(b)
	returned = true
	if more { // what came meanwhile is not the caller's
		go l.run(b)
		return
	}
	l.work.Done()
}

// back notes that the leader, if there was one, has come back.
func (b *batch) back() {
	b.leash = nil
	for _, s := range b.sends {
		if s.of.led == b {
			s.of.led = nil
		}
	}
}

// letGo ends the wait of a leader for a connection; that for a reply ends at the
// deadline. The lane does not wait for it.
func (l *lane) letGo(x *call) {
	if x.led != nil {
		l.leave(x.led)
		close(x.led.leash.over)
		x.led = nil
	}
}
