package redistest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
)

// link is one connection of a client and its counterpart to the server.
type link struct {
	proxy    *Proxy
	endpoint *endpoint
	cancel   context.CancelFunc
	client   net.Conn

	mu       sync.Mutex
	closed   bool
	server   *net.TCPConn // nil until dialed
	awaiting []expected   // the expected replies, in order
}

// expected is a reply that the server has not sent yet.
type expected struct {
	hold   *rule  // not nil: hold the reply
	drop   *rule  // not nil: drop the reply
	batch  *batch // not nil: the reply belongs to a batch that is cut
	stream bool   // replies from here on belong to no command
}

func (l *link) run(ctx context.Context) {
	defer l.close()
	// A partition also stops new connections.
	if l.proxy.partition.wait(ctx) != nil || !l.dial(ctx) {
		return
	}
	var down sync.WaitGroup
	down.Go(func() { l.forwardReplies(ctx) })
	l.forwardCommands(ctx)
	// A client that has closed does not end the link: the server still has to read what
	// the client has sent. The server closes after that.
	_ = l.proxy.partition.run(ctx, func() { _ = l.server.CloseWrite() })
	down.Wait()
}

func (l *link) dial(ctx context.Context) bool {
	dialer := net.Dialer{Timeout: readyTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", l.endpoint.target)
	if err != nil {
		return false // the client sees a server that closes at once
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	server, ok := conn.(*net.TCPConn)
	if l.closed || !ok {
		_ = conn.Close()
		return false
	}
	l.server = server
	return true
}

// close closes both sides at once. It is safe for concurrent use.
func (l *link) close() {
	// First: goroutines that wait for the end of a partition, or for a release, must find
	// the context ended.
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// forwardCommands forwards the commands of the client. It returns when the client has
// closed, and the server may be informed, or when the link is closed.
func (l *link) forwardCommands(ctx context.Context) {
	client := &timestampedConn{Conn: l.client}
	reader := bufio.NewReader(client)
	stream := false
	for {
		command, data, err := readCommand(reader)
		if !l.proxy.awaitDelay(ctx, client.at) || l.proxy.partition.wait(ctx) != nil {
			return
		}
		if err != nil {
			l.report("client", err)
			return
		}
		if len(command) > 0 {
			stream = stream || endsReplies(command)
			if batch := l.batchOf(command, stream); batch != nil {
				if !l.forwardBatch(ctx, reader, batch, command, data) {
					return
				}
				continue
			}
			if !l.applyRules(ctx, command, stream) {
				return
			}
		}
		if l.proxy.partition.write(ctx, l.server, data) != nil {
			return // the server has closed, and forwardReplies finds out, too
		}
	}
}

// applyRules applies the rules to a command, and expects its reply. It returns false if the
// command must not be forwarded.
func (l *link) applyRules(ctx context.Context, command []string, stream bool) bool {
	l.proxy.count(command[0])
	rules := &l.proxy.rules
	if hold := rules.take(&rules.commandHolds, command); hold != nil {
		close(hold.happened)
		select {
		case <-hold.released:
		case <-ctx.Done():
			return false
		}
	}
	reply := expected{stream: stream}
	if !stream {
		reply.hold = rules.take(&rules.replyHolds, command)
		reply.drop = rules.take(&rules.replyDrops, command)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaiting = append(l.awaiting, reply)
	return true
}

// forwardReplies forwards the replies of the server. When the server has closed it closes
// the link and returns.
func (l *link) forwardReplies(ctx context.Context) {
	defer l.close()
	server := &timestampedConn{Conn: l.server}
	reader := bufio.NewReader(server)
	silent := false // the client receives no more replies
	for {
		var raw bytes.Buffer
		kind, err := skipReply(reader, &raw)
		if !l.proxy.awaitDelay(ctx, server.at) {
			return
		}
		if !silent && l.keepReply(ctx, kind, raw.Bytes(), err) {
			continue
		}
		if err == nil && kind != pushType && l.hold(ctx) != nil {
			return
		}
		// During a partition the client must not see its connection close, either.
		passed := l.proxy.partition.run(ctx, func() {
			if err != nil {
				l.close()
			} else if kind != pushType && l.answered() {
				silent = true
			}
		})
		if err != nil {
			l.report("server", err)
			return
		}
		if passed != nil {
			return
		}
		if silent {
			continue
		}
		// After the client has closed, the server must still read what the client sent
		// before.
		silent = l.proxy.partition.write(ctx, l.client, raw.Bytes()) != nil
	}
}

// hold waits if a rule holds the reply that has arrived. It fails when ctx ends.
func (l *link) hold(ctx context.Context) error {
	hold := l.holdRule()
	if hold == nil {
		return nil
	}
	close(hold.happened)
	select {
	case <-hold.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *link) holdRule() *rule {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.awaiting) == 0 {
		return nil
	}
	return l.awaiting[0].hold
}

// answered records that the server has sent a reply. If a rule drops the reply, answered
// applies the rule and returns true.
func (l *link) answered() (dropped bool) {
	drop := l.next()
	if drop == nil {
		return false
	}
	if drop.mode == CloseConn {
		l.close()
	}
	close(drop.happened)
	return true
}

// next removes the next expected reply, and returns the rule to drop it, or nil.
func (l *link) next() *rule {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.awaiting) == 0 || l.awaiting[0].stream {
		return nil
	}
	reply := l.awaiting[0]
	l.awaiting = l.awaiting[1:]
	return reply.drop
}

// report fails the test if one side violates the protocol. The end of a connection, even
// within a message, is no violation.
func (l *link) report(side string, err error) {
	if errors.Is(err, errMalformed) {
		l.proxy.tb.Errorf("proxy: the %s does not speak resp: %v", side, err)
	}
}
