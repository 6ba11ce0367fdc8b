package pubsub

import (
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// handle handles a reply, a message or an error reply of the server.
func (c *shardConn) handle(reply any, err error) (more bool) {
	switch reply := reply.(type) {
	case *redis.Subscription:
		switch reply.Kind {
		case "ssubscribe", "subscribe":
			c.handleSubscribed(reply.Channel)
		case "sunsubscribe":
			c.handleUnsubscribed(reply.Channel)
		}
	case *redis.Message:
		c.parent.decode(reply.Payload, c.parent.keyOf)
	case *redis.Pong:
		c.takeRequest(ping, "")
	default:
		if err != nil {
			c.handleError(err.Error())
		}
	}
	c.parent.checkMasters(c)
	return true
}

// takeRequest removes and returns the first unanswered request of a kind for a channel.
// found is false if there is none.
func (c *shardConn) takeRequest(k kind, name string) (r request, found bool) {
	c.parent.mu.Lock()
	defer c.parent.mu.Unlock()
	i := slices.IndexFunc(c.unanswered, func(r request) bool { return r.kind == k && r.name == name })
	if i < 0 {
		return request{}, false
	}
	r = c.unanswered[i]
	if i == 0 { // the usual case, without a copy of the others
		c.unanswered[0], c.unanswered = request{}, c.unanswered[1:]
	} else {
		c.unanswered = slices.Delete(c.unanswered, i, i+1)
	}
	return r, true
}

// handleSubscribed handles the server's confirmation. It first hints at the key, because
// earlier messages were missed. Then it closes ready, so that a listener that checks the key
// when it is ready checks the key only once. It calls the hint function without the mutex,
// because the hint function may call listen and stop.
func (c *shardConn) handleSubscribed(name string) {
	r, found := c.takeRequest(subscribe, name)
	if !found {
		return
	}
	s, channel := c.parent, r.channel
	s.mu.Lock()
	if s.closed || channel.conn != c {
		s.mu.Unlock()
		return
	}
	ready := channel.ready
	if channel.isConfirmed {
		ready = nil // an earlier reply has closed it
	}
	channel.isConfirmed, channel.confirmedAt = true, time.Now()
	channel.tries = 0
	channel.postpone(s.timing)
	s.resolve(channel)
	s.mu.Unlock()
	s.hint(channel.key, "")
	if ready != nil {
		close(ready)
	}
}

// handleUnsubscribed handles the reply to an unsubscribe request. Without such a request,
// the server has ended the subscription because the slot has another master now, and the
// channel is resolved again. Exception: if the subscription is not confirmed yet, a reply
// to its own request follows.
func (c *shardConn) handleUnsubscribed(name string) {
	if _, found := c.takeRequest(unsubscribe, name); found {
		return
	}
	c.parent.mu.Lock()
	defer c.parent.mu.Unlock()
	if channel := c.channels[name]; channel != nil && channel.isConfirmed && !c.parent.closed {
		c.parent.isTableStale = true
		c.parent.invalidate(channel)
	}
}

// handleError handles an error reply. It resolves a refused channel again: its slot may have
// another master, or the error may be temporary. If an ACL forbids sharded channels, the next
// requests are for the channel of the process, and the other way round.
func (c *shardConn) handleError(text string) {
	s := c.parent
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(c.unanswered) == 0 || s.closed {
		return
	}
	r := c.unanswered[0]
	c.unanswered = c.unanswered[1:]
	if r.kind != subscribe {
		return
	}
	isForbidden := strings.HasPrefix(text, "NOPERM")
	if isForbidden && s.isPlain == (r.name == s.shared.channel) {
		s.isPlain = !s.isPlain
	}
	if r.channel.conn == c {
		s.isTableStale = s.isTableStale || !isForbidden
		s.invalidate(r.channel)
	}
}
