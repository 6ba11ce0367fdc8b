package idempotent

import (
	"context"
	"errors"
	"net"
	"time"
)

// A client is a caller that checks the answers.
type client struct {
	caller *caller
	who    int
	number int    // of the last key
	size   int    // of the answers
	first  answer // to the first key
	last   answer // to the last key; valid until the next call
}

// newClient connects to a service whose answers have that size. Clients with the same
// number send the same keys.
func newClient(ctx context.Context, addr string, who, size int) (*client, error) {
	caller, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &client{caller: caller, who: who, size: size}, nil
}

// begin sends the client's first key. Replays must equal its answer.
func (c *client) begin() error {
	c.caller.use(c.who, c.number)
	got, err := c.caller.call()
	if err != nil {
		return err
	}
	c.first = got.clone()
	return got.mustBePaid(c.size)
}

// send sends one request of a case, and returns its duration. It returns an error if the
// answer does not fit the case.
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
	c.last = got // not copied: a copy would be measured, too
	return took, got.mustBePaid(c.size)
}

// again repeats the last request. The answer must be the same.
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
