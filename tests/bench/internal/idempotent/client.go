package idempotent

import (
	"context"
	"errors"
	"net"
	"time"
)

// A client is a caller that knows what it sends, and what the answer must be.
type client struct {
	caller *caller
	who    int
	number int    // of the key that was sent last
	size   int    // of the answers
	first  answer // to the key that began
	last   answer // to the key that was sent last; good until the next call
}

// newClient connects to a service whose answers have so many bytes. Clients of
// the same number send the same keys.
func newClient(ctx context.Context, addr string, who, size int) (*client, error) {
	caller, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &client{caller: caller, who: who, size: size}, nil
}

// begin sends the client's first key, whose answer is what replays must equal.
func (c *client) begin() error {
	c.caller.use(c.who, c.number)
	got, err := c.caller.call()
	if err != nil {
		return err
	}
	c.first = got.clone()
	return got.mustBePaid(c.size)
}

// send sends one request of a case, and returns how long it took. The error says
// that the answer is not what the case is about.
func (c *client) send(which Case) (time.Duration, error) {
	if which == First {
		c.number++
		c.caller.use(c.who, c.number)
	}
	began := time.Now()
	got, err := c.caller.call()
	took := time.Since(began)
	if err != nil {
		return took, err
	}
	if which == Replay {
		return took, got.mustEqual(c.first)
	}
	c.last = got // not copied, which would be at the cost of what is measured
	return took, got.mustBePaid(c.size)
}

// again sends the last request once more: the answer must be the same.
func (c *client) again() error {
	first := c.last.clone()
	got, err := c.caller.call()
	if err != nil {
		return err
	}
	return got.mustEqual(first)
}

// close ends the connection, unless it has ended with its context.
func (c *client) close() error {
	if err := c.caller.conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
