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
	proxy  *Proxy
	target string // host:port of the server
	cancel context.CancelFunc
	client net.Conn

	mu       sync.Mutex
	closed   bool
	server   *net.TCPConn // nil until dialled
	awaiting []expected   // the replies that the server owes, in order
}

// expected is a reply that the server owes.
type expected struct {
	late   *rule  // not nil: the reply is to be held
	drop   *rule  // not nil: the reply is to be dropped
	batch  *batch // not nil: the reply belongs to a batch that is cut
	stream bool   // from here on nothing is known about replies
}

// run connects to the server and forwards until both sides are closed.
func (l *link) run(ctx context.Context) {
	defer l.close()
	// Behind a partition not even the connection reaches the server.
	if l.proxy.gate.wait(ctx) != nil || !l.dial(ctx) {
		return
	}
	var down sync.WaitGroup
	down.Go(func() { l.forwardReplies(ctx) })
	l.forwardCommands(ctx)
	// A client that has closed its side does not end the link: the server has
	// yet to read what was sent, and closes when it has.
	_ = l.proxy.gate.pass(ctx, func() { _ = l.server.CloseWrite() })
	down.Wait()
}

// dial connects to the server, or returns false.
func (l *link) dial(ctx context.Context) bool {
	dialer := net.Dialer{Timeout: readyTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", l.target)
	if err != nil {
		return false // for the client, a server that closes at once
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
	// First of all: whoever waits at the gate or for a release has to find
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

// forwardCommands sends what the client says to the server. It returns when
// the client has closed and the server may know, or when the link is closed.
func (l *link) forwardCommands(ctx context.Context) {
	client := &stamped{Conn: l.client}
	reader := bufio.NewReader(client)
	stream := false
	for {
		command, data, err := readCommand(reader)
		if !l.proxy.late(ctx, client.at) || l.proxy.gate.wait(ctx) != nil {
			return
		}
		if err != nil {
			l.report("client", err)
			return
		}
		if len(command) > 0 {
			stream = stream || endsReplies(command)
			if batch := l.begins(command, stream); batch != nil {
				if !l.forwardBatch(ctx, reader, batch, command, data) {
					return
				}
				continue
			}
			if !l.see(ctx, command, stream) {
				return
			}
		}
		if l.proxy.gate.write(ctx, l.server, data) != nil {
			return // the server is gone, and forwardReplies finds out, too
		}
	}
}

// see applies the rules to a command on its way to the server, and notes the
// reply that is to come. It returns false if the command must not go on.
func (l *link) see(ctx context.Context, command []string, stream bool) bool {
	l.proxy.count(command[0])
	rules := &l.proxy.rules
	if hold := rules.take(&rules.holds, command); hold != nil {
		close(hold.happened)
		select {
		case <-hold.released:
		case <-ctx.Done():
			return false
		}
	}
	reply := expected{stream: stream}
	if !stream {
		reply.late = rules.take(&rules.lates, command)
		reply.drop = rules.take(&rules.drops, command)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaiting = append(l.awaiting, reply)
	return true
}

// forwardReplies sends what the server says to the client. It returns when
// the server has closed, and closes the link then.
func (l *link) forwardReplies(ctx context.Context) {
	defer l.close()
	server := &stamped{Conn: l.server}
	reader := bufio.NewReader(server)
	silent := false // the client gets nothing any more
	for {
		var raw bytes.Buffer
		kind, err := skipReply(reader, &raw)
		if !l.proxy.late(ctx, server.at) {
			return
		}
		if !silent && l.keepReply(ctx, kind, raw.Bytes(), err) {
			continue
		}
		if err == nil && kind != pushType && l.hold(ctx) != nil {
			return
		}
		// Inside the gate: behind a partition the client must not see its
		// connection close, either.
		passed := l.proxy.gate.pass(ctx, func() {
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
		// A client that has closed must not keep the server from reading what
		// it sent before: go on without it.
		silent = l.proxy.gate.write(ctx, l.client, raw.Bytes()) != nil
	}
}

// hold waits where a rule says to hold the reply that has come. It fails when ctx
// ends.
func (l *link) hold(ctx context.Context) error {
	late := l.late()
	if late == nil {
		return nil
	}
	close(late.happened)
	select {
	case <-late.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// late returns the rule to hold the oldest reply that the server owes, or nil.
func (l *link) late() *rule {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.awaiting) == 0 {
		return nil
	}
	return l.awaiting[0].late
}

// answered notes that the server has sent a reply. If a rule says to drop it,
// answered does what the rule says, and returns true.
func (l *link) answered() (dropped bool) {
	drop := l.settle()
	if drop == nil {
		return false
	}
	if drop.mode == CloseConn {
		l.close()
	}
	close(drop.happened)
	return true
}

// settle removes the oldest reply that the server owes, and returns the rule
// to drop it, or nil.
func (l *link) settle() *rule {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.awaiting) == 0 || l.awaiting[0].stream {
		return nil
	}
	reply := l.awaiting[0]
	l.awaiting = l.awaiting[1:]
	return reply.drop
}

// report fails the test if one side does not speak the protocol. That the
// connection ends, even in the midst of a message, is what the proxy is for.
func (l *link) report(side string, err error) {
	if errors.Is(err, errMalformed) {
		l.proxy.tb.Errorf("proxy: the %s does not speak resp: %v", side, err)
	}
}
