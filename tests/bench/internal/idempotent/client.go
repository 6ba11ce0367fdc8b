package idempotent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	payment = `{"from":"DE02120300000000202051","to":"DE02500105170137075030","cents":4999}`

	// keyLength is the length of a UUID, which Fiber's middleware requires.
	keyLength = 36
)

// An answer is the part of a response that a replay must repeat.
type answer struct {
	status      int
	contentType string
	body        []byte
}

// mustEqual returns an error unless a replay equals the first answer.
func (a answer) mustEqual(first answer) error {
	if a.status != first.status || a.contentType != first.contentType || !bytes.Equal(a.body, first.body) {
		return fmt.Errorf("the replay is %d %s %.200s, and the first answer was %d %s %.200s",
			a.status, a.contentType, a.body, first.status, first.contentType, first.body)
	}
	return nil
}

// clone returns a copy of the answer.
func (a answer) clone() answer {
	a.body = bytes.Clone(a.body)
	return a
}

// A client checks the answers to its requests. It keeps one connection, and writes the same bytes
// for all frameworks. It uses little CPU, since it shares the CPUs with the service.
type client struct {
	conn    net.Conn
	answers *bufio.Reader
	request []byte
	key     []byte // the key in the request
	body    bytes.Buffer

	id     int
	number int    // of the last key
	size   int    // of the answers
	first  answer // to the first key
	last   answer // to the last key; valid until the next call
}

// newClient connects to a service whose answers have that size, until ctx ends. Clients with the
// same id send the same keys.
func newClient(ctx context.Context, addr string, id, size int) (*client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	c := &client{conn: conn, answers: bufio.NewReader(conn), id: id, size: size}
	c.request = fmt.Appendf(c.request, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s: ",
		path, addr, len(payment), keyHeader)
	begin := len(c.request)
	c.request = append(c.request, make([]byte, keyLength)...)
	c.request = append(c.request, "\r\n\r\n"+payment...)
	c.key = c.request[begin : begin+keyLength : begin+keyLength]
	c.use(0)
	return c, nil
}

// use sets the number of the key.
func (c *client) use(number int) {
	c.number = number
	c.key = fmt.Appendf(c.key[:0], "%08x-0000-4000-8000-%012x", c.id, number)
}

// begin sends the client's first key. Replays must equal its answer.
func (c *client) begin() error {
	got, err := c.call()
	if err != nil {
		return err
	}
	c.first = got.clone()
	return c.mustBePaid(got)
}

// send sends one request of a case, and returns its duration. It returns an error if the answer
// does not fit the case.
func (c *client) send(which string) (time.Duration, error) {
	if which == first {
		c.use(c.number + 1)
	}
	began := time.Now()
	got, err := c.call()
	took := time.Since(began)
	if err != nil {
		return took, err
	}
	if which == replay || which == copied {
		return took, got.mustEqual(c.first)
	}
	c.last = got // not copied: a copy would be measured, too
	return took, c.mustBePaid(got)
}

// again repeats the last request. The answer must be the same.
func (c *client) again() error {
	first := c.last.clone()
	got, err := c.call()
	if err != nil {
		return err
	}
	return got.mustEqual(first)
}

// call sends the request and returns the answer. Its body is valid until the next call.
func (c *client) call() (answer, error) {
	if _, err := c.conn.Write(c.request); err != nil {
		return answer{}, err
	}
	response, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return answer{}, err
	}
	c.body.Reset()
	_, err = c.body.ReadFrom(response.Body)
	return answer{response.StatusCode, response.Header.Get("Content-Type"), c.body.Bytes()}, errors.Join(err, response.Body.Close())
}

// mustBePaid returns an error unless the answer is one of the handler.
func (c *client) mustBePaid(got answer) error {
	if got.status != answerStatus || got.contentType != answerType || len(got.body) != c.size {
		return fmt.Errorf("the answer is not %d %s with %d bytes but %d %s %.200s",
			answerStatus, answerType, c.size, got.status, got.contentType, got.body)
	}
	return nil
}

// close ends the connection, unless it has ended with its context.
func (c *client) close() error {
	if err := c.conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
