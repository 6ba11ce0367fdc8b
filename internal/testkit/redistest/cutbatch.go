package redistest

import (
	"bufio"
	"bytes"
	"context"
	"math"
)

// Uncut is a number of bytes that CutBatch never reaches.
const Uncut = math.MaxInt

// A CutCommand is the result of one command of a batch that CutBatch has cut.
type CutCommand struct {
	// Command is the command, with its name in upper case.
	Command []string
	// Bytes is how long the command is on the wire.
	Bytes int
	// Reply is the unchanged reply of the server. It is "" if the server did not receive
	// the whole command, and so has not executed it.
	Reply string
	// Delivered reports whether the client received the whole reply.
	Delivered bool
}

// batch is a batch that CutBatch cuts.
type batch struct {
	size, commands, replies int // see CutBatch
	outcomes                []CutCommand
	answered                int               // the number of replies so far
	received                bytes.Buffer      // the replies so far
	happened                chan []CutCommand // receives the outcomes when the batch was cut
}

// CutBatch breaks the connection within a batch. The batch begins with the next command for
// which match returns true, and has size commands, which the client sends one after the other.
// The first bytes of the batch reach the server, as many as commands says, and the server
// executes the complete commands. Then the first bytes of the replies reach the client, as many
// as replies says, and the connection is closed. Either number may be Uncut. If nothing is cut,
// the connection stays open.
//
// The channel cut delivers the results of all commands when all of this has happened. If the
// client does not complete the batch, the server receives nothing and cut delivers nothing. No
// other rule applies to the commands of the batch.
//
// The rules for match are those of DropReply. CutBatch is safe for concurrent use.
func (p *Proxy) CutBatch(match func(command []string) bool, size, commands, replies int) (cut <-chan []CutCommand) {
	b := &batch{size: size, commands: commands, replies: replies, happened: make(chan []CutCommand, 1)}
	p.rules.add(&p.rules.batchCuts, &rule{match: match, batch: b})
	return b.happened
}

func (l *link) batchOf(command []string, stream bool) *batch {
	rules := &l.proxy.rules
	if stream {
		return nil
	}
	if cut := rules.take(&rules.batchCuts, command); cut != nil {
		return cut.batch
	}
	return nil
}

// forwardBatch reads the rest of the batch that begins with the command, and sends the part
// that is not cut to the server. It returns false if nothing may follow: part of the batch was
// cut, or the connection to the server is closed.
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
	l.expectReplies(b)
	passing := whole[:min(b.commands, len(whole))]
	return l.proxy.partition.write(ctx, l.server, passing) == nil && len(passing) == len(whole)
}

func (l *link) expectReplies(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range b.size {
		l.awaiting = append(l.awaiting, expected{batch: b})
	}
}

// keepReply keeps the reply if it belongs to a batch, and reports whether it did. After the last
// reply, or if err says that no more replies will arrive, it forwards the part of the replies
// that is not cut.
func (l *link) keepReply(ctx context.Context, kind byte, reply []byte, err error) (kept bool) {
	b := l.awaited()
	if b == nil || kind == pushType {
		return false
	}
	if err == nil {
		l.next()
		b.received.Write(reply)
		b.outcomes[b.answered].Reply = string(reply)
		b.answered++
		if b.answered < b.size {
			return true
		}
	}
	received := b.received.Bytes()
	delivered := received[:min(b.replies, len(received))]
	if l.proxy.partition.write(ctx, l.client, delivered) == nil { // an error: the client has closed the connection
		b.markDelivered(len(delivered))
	}
	if err != nil || len(delivered) < len(received) {
		_ = l.proxy.partition.run(ctx, l.close)
	}
	b.happened <- b.outcomes
	return err == nil
}

// markDelivered marks the replies that are complete in the first bytes of all replies.
func (b *batch) markDelivered(bytes int) {
	for i := range b.answered {
		bytes -= len(b.outcomes[i].Reply)
		b.outcomes[i].Delivered = bytes >= 0
	}
}

func (l *link) awaited() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.awaiting) == 0 {
		return nil
	}
	return l.awaiting[0].batch
}
