package pipeline

import (
	"context"
	"net"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// A nodeBatch is the commands of a batch for one server. They are sent on one connection,
// with one WAIT after them.
type nodeBatch struct {
	server redis.UniversalClient
	asking bool // each command after ASKING: the slot is being moved to the server
	sends  []*send
}

// execAcknowledged sends the first n commands of the batch, as exec does, and asks how
// many replicas have what they have written. WAIT counts for one connection only, so in a
// cluster each master gets its own commands as a pipeline. The client does not follow
// redirections of those, so execAcknowledged does.
func (l *lane) execAcknowledged(b *batch, n int) {
	sends := b.sends[:n]
	l.execNodes(b, l.pipeline.splitByNode(sends))
	if away := l.redirected(sends); len(away) > 0 {
		l.execNodes(b, l.pipeline.splitByTarget(away))
	}
}

// execNodes sends all node batches at the same time.
func (l *lane) execNodes(b *batch, nodes []*nodeBatch) {
	if len(nodes) == 0 {
		return
	}
	var others sync.WaitGroup
	for _, n := range nodes[1:] {
		others.Go(func() { n.exec(b, l.pipeline.replicas) })
	}
	nodes[0].exec(b, l.pipeline.replicas)
	others.Wait()
}

// exec sends the commands, and reads their replies and the reply to WAIT. If that one is
// missing, each command counts as unanswered, and may be sent again.
func (n *nodeBatch) exec(b *batch, replicas command.Replicas) {
	cmds := make([]redis.Cmder, 0, 2*len(n.sends)+1)
	for _, s := range n.sends {
		if n.asking {
			cmds = append(cmds, command.New(0, []any{"asking"}))
		}
		cmds = append(cmds, s.command)
	}
	wait := replicas.WaitCommand()
	ctx, pipe := b.context(), n.server.Pipeline()
	_ = pipe.BatchProcess(ctx, append(cmds, wait)...) // it sends nothing yet
	batchErr := command.Exec(func() error {
		_, err := pipe.Exec(ctx)
		return err
	})
	count, failed := wait.Reply(batchErr)
	unconfirmed := replicas.Confirm(count, failed)
	for _, s := range n.sends {
		value, err := s.command.Reply(batchErr)
		if err == nil && failed != nil && command.IsTransport(failed) {
			value, err = nil, failed
		}
		s.reply = Reply{Value: value, Err: err, Sent: b.begun, Unconfirmed: unconfirmed}
	}
}

// splitByNode divides commands by the masters that have their keys now. A command whose
// master is unknown is not sent.
func (p *Pipeline) splitByNode(sends []*send) (nodes []*nodeBatch) {
	if p.cluster == nil {
		return []*nodeBatch{{server: p.rdb, sends: sends}}
	}
	byMaster := make(map[*redis.Client]*nodeBatch)
	for _, s := range sends {
		master, err := p.cluster.MasterForKey(context.Background(), string(s.call.Key))
		if err != nil {
			s.reply = Reply{Err: command.Unsent(err)}
			continue
		}
		n := byMaster[master]
		if n == nil {
			n = &nodeBatch{server: master}
			byMaster[master] = n
			nodes = append(nodes, n)
		}
		n.sends = append(n.sends, s)
	}
	return nodes
}

// redirected returns the commands that a master of a cluster has redirected, without
// those of calls that are settled.
func (l *lane) redirected(sends []*send) (away []*send) {
	if l.pipeline.cluster == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range sends {
		if _, _, ok := parseRedirection(s.reply.Err); ok && !s.call.settled {
			away = append(away, s)
		}
	}
	return away
}

// parseRedirection reads the address of another node from a MOVED or an ASK error, in the
// form that the client uses. asking is true for ASK: the slot is being moved there.
func parseRedirection(err error) (address string, asking, ok bool) {
	if err == nil {
		return "", false, false
	}
	fields := strings.Fields(err.Error())
	if len(fields) != 3 || (fields[0] != "MOVED" && fields[0] != "ASK") {
		return "", false, false
	}
	address, asking = fields[2], fields[0] == "ASK"
	if colon := strings.LastIndexByte(address, ':'); colon >= 0 { // the server sends IPv6 without brackets
		address = net.JoinHostPort(strings.Trim(address[:colon], "[]"), address[colon+1:])
	}
	return address, asking, true
}

// splitByTarget divides redirected commands by the nodes that the redirections name. It
// loads the slots, so it may take long. A node without a slot is not found: its commands
// keep their error.
func (p *Pipeline) splitByTarget(away []*send) (nodes []*nodeBatch) {
	masters := p.reloadMasters()
	type target struct {
		address string
		asking  bool
	}
	byTarget := make(map[target]*nodeBatch)
	for _, s := range away {
		address, asking, _ := parseRedirection(s.reply.Err)
		master := masters[address]
		if master == nil {
			continue
		}
		n := byTarget[target{address, asking}]
		if n == nil {
			n = &nodeBatch{server: master, asking: asking}
			byTarget[target{address, asking}] = n
			nodes = append(nodes, n)
		}
		n.sends = append(n.sends, s)
	}
	return nodes
}

// reloadMasters makes the client of a cluster load the slots, and returns the masters that
// have slots, by address.
func (p *Pipeline) reloadMasters() map[string]*redis.Client {
	var mu sync.Mutex
	masters := make(map[string]*redis.Client)
	_ = p.cluster.ForEachMaster(context.Background(), func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		masters[master.Options().Addr] = master
		return nil
	})
	return masters
}
