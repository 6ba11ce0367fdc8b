package redistest

import (
	"bufio"
	"bytes"
	"context"
	"math"
)

// Uncut is a number of bytes that CutBatch never reaches.
const Uncut = math.MaxInt

// A CutCommand is what became of one command of a batch that CutBatch has cut.
type CutCommand struct {
	// Command is what the client sent, with its name in upper case.
	Command []string
	// Bytes is how long the command is on the wire.
	Bytes int
	// Reply is what the server answered, unchanged; "" if it did not get the
	// whole command, and so has not executed it.
	Reply string
	// Delivered is whether the whole reply got through to the client.
	Delivered bool
}

// batch is the commands that a cut waits for, and what became of them.
type batch struct {
	size, commands, replies int // see CutBatch
	outcomes                []CutCommand
	answered                int          // replies so far
	said                    bytes.Buffer // their bytes
	happened                chan []CutCommand
}

// CutBatch breaks the connection in the midst of a batch: so many commands, size
// of them, that a client sends one after the other, beginning with the next one
// for which match returns true. The first bytes of the batch reach the server,
// as many as commands says, and then nothing more. The server executes what it
// got whole. When it has, the client hears the first bytes of the replies, as
// many as replies says, and then its connection is closed. Either number may be
// Uncut; a connection on which nothing is cut lives on.
//
// The channel cut gives a outcome for each command, once, when all of that has
// happened. A batch that the client does not complete gets nowhere, and nothing
// is told of it. No other rule applies to its commands.
//
// The rules for match are those of DropReply. CutBatch is safe for concurrent
// use.
func (p *Proxy) CutBatch(match func(command []string) bool, size, commands, replies int) (cut <-chan []CutCommand) {
	b := &batch{size: size, commands: commands, replies: replies, happened: make(chan []CutCommand, 1)}
	p.rules.add(&p.rules.cuts, &rule{match: match, batch: b})
	return b.happened
}

// begins returns the batch that begins with the command, or nil.
func (l *link) begins(command []string, stream bool) *batch {
	rules := &l.proxy.rules
	if stream {
		return nil
	}
	if cut := rules.take(&rules.cuts, command); cut != nil {
		return cut.batch
	}
	return nil
}

// forwardBatch reads the rest of a batch that begins with a command, and sends
// the server what the cut leaves of it. It returns false if that is not all, or
// if the server is gone: then nothing may follow.
func (l *link) forwardBatch(ctx context.Context, reader *bufio.Reader, b *batch, command []string, data []byte) bool {
	var whole []byte
	for {
		whole = append(whole, data...)
		if len(command) > 0 {
			l.proxy.count(command[0])
			b.outcomes = append(b.outcomes, CutCommand{Command: command, Bytes: len(data)})
		}
		if len(b.outcomes) == b.size {
			break
		}
		var err error
		if command, data, err = readCommand(reader); err != nil {
			l.report("client", err)
			return false
		}
	}
	l.await(b)
	passing := whole[:min(b.commands, len(whole))]
	return l.proxy.gate.write(ctx, l.server, passing) == nil && len(passing) == len(whole)
}

// await notes the replies to a batch that are to come.
func (l *link) await(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range b.size {
		l.awaiting = append(l.awaiting, expected{batch: b})
	}
}

// keepReply keeps a reply back if it answers a batch, and returns whether it
// did. It lets the replies go, as far as the cut does, when all are there, or
// when err says that no more will come.
func (l *link) keepReply(ctx context.Context, kind byte, reply []byte, err error) (kept bool) {
	b := l.awaited()
	if b == nil || kind == pushType {
		return false
	}
	if err == nil {
		l.settle()
		b.said.Write(reply)
		b.outcomes[b.answered].Reply = string(reply)
		b.answered++
		if b.answered < b.size {
			return true
		}
	}
	said := b.said.Bytes()
	heard := said[:min(b.replies, len(said))]
	if l.proxy.gate.write(ctx, l.client, heard) == nil { // else it has gone, and nobody knows what it heard
		b.hear(len(heard))
	}
	if err != nil || len(heard) < len(said) {
		_ = l.proxy.gate.pass(ctx, l.close)
	}
	b.happened <- b.outcomes
	return err == nil
}

// hear notes whose replies are whole when the client has heard so many bytes.
func (b *batch) hear(bytes int) {
	for i := range b.answered {
		bytes -= len(b.outcomes[i].Reply)
		b.outcomes[i].Delivered = bytes >= 0
	}
}

// awaited returns the batch that the next reply belongs to, or nil.
func (l *link) awaited() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.awaiting) == 0 {
		return nil
	}
	return l.awaiting[0].batch
}
