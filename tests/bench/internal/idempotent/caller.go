package idempotent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
)

const (
	payment = `{"from":"DE02120300000000202051","to":"DE02500105170137075030","cents":4999}`

	// keyLength is the length of a UUID, which Fiber's middleware requires.
	keyLength = 36
)

// A caller is a client with one connection that is kept alive. It is the same for all
// frameworks, and uses little CPU, since it shares the CPUs with the service.
type caller struct {
	conn    net.Conn
	answers *bufio.Reader
	request []byte
	key     []byte // the key in the request
	body    bytes.Buffer
}

// dial connects to a service until ctx ends.
func dial(ctx context.Context, addr string) (*caller, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	c := &caller{conn: conn, answers: bufio.NewReader(conn)}
	c.request = fmt.Appendf(c.request, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s: ",
		path, addr, len(payment), keyHeader)
	begin := len(c.request)
	c.request = append(c.request, make([]byte, keyLength)...)
	c.request = append(c.request, "\r\n\r\n"+payment...)
	c.key = c.request[begin : begin+keyLength : begin+keyLength]
	return c, nil
}

// use sets the key of the caller: the key with that number of a client.
func (c *caller) use(client, number int) {
	c.key = fmt.Appendf(c.key[:0], "%08x-0000-4000-8000-%012x", client, number)
}

// call sends the request and returns the answer. Its body is valid until the next call.
func (c *caller) call() (answer, error) {
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
