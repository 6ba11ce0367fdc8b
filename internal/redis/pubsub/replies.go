package pubsub

import (
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// take takes in what the server says.
func (c *shardConn) take(got any, err error) (more bool) {
	switch got := got.(type) {
	case *redis.Subscription:
		switch got.Kind {
		case "ssubscribe":
			c.confirmed(got.Channel)
		case "sunsubscribe":
			c.left(got.Channel)
		}
	case *redis.Message:
		c.of.message(got.Payload, c.of.waited)
	case *redis.Pong:
		c.answered(ping, "")
	default:
		if err != nil {
			c.refused(err.Error())
		}
	}
	c.of.review(c)
	return true
}

// answered returns the word that is answered.
func (c *shardConn) answered(v verb, name string) (w word, wasAsked bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	i := slices.IndexFunc(c.asked, func(w word) bool { return w.verb == v && w.name == name })
	if i < 0 {
		return word{}, false
	}
	w = c.asked[i]
	if i == 0 { // as mostly: the others stay where they are
		c.asked[0], c.asked = word{}, c.asked[1:]
	} else {
		c.asked = slices.Delete(c.asked, i, i+1)
	}
	return w, true
}

// confirmed hints at the key, since what was said before was missed, and then
// makes those ready who wait for it: who looks when it is ready need not look
// twice. The hint is given unlocked; whoever hears it may listen or stop.
func (c *shardConn) confirmed(name string) {
	w, wasAsked := c.answered(subscribe, name)
	if !wasAsked {
		return
	}
	s, channel := c.of, w.channel
	s.mu.Lock()
	if s.closed || channel.conn != c {
		s.mu.Unlock()
		return
	}
	ready := channel.ready
	if channel.up {
		ready = nil // another answer has made it ready
	}
	channel.up, channel.since = true, time.Now()
	channel.pause = s.pace.shortest
	channel.retry(s.pace)
	s.seek(channel)
	s.mu.Unlock()
	s.hint(channel.key, "")
	if ready != nil {
		close(ready)
	}
}

// left looks anew for a channel that the server has ended, because its slot has
// another master now. One that is not up yet has its own answer to come.
func (c *shardConn) left(name string) {
	if _, wasAsked := c.answered(unsubscribe, name); wasAsked {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if channel := c.channels[name]; channel != nil && channel.up && !c.of.closed {
		c.of.stale = true
		c.of.lose(channel)
	}
}

// refused takes in an error. A refused channel is looked for anew: its slot may
// have another master, or the server may be about to outgrow the error. One that
// a rule forbids is asked for now and then all the same.
func (c *shardConn) refused(text string) {
	s := c.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(c.asked) == 0 || s.closed {
		return
	}
	w := c.asked[0]
	c.asked = c.asked[1:]
	if w.verb != subscribe {
		return
	}
	if strings.HasPrefix(text, "ERR unknown command") {
		s.listenPlain()
		return
	}
	if w.channel.conn == c {
		s.stale = s.stale || !strings.HasPrefix(text, "NOPERM")
		s.lose(w.channel)
	}
}
