package pipeline

import (
	"context"
	"net"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// A party is those commands of a batch that leave for one server, on one
// connection, with one WAIT behind them.
type party struct {
	server redis.UniversalClient
	asking bool // each behind ASKING: it is a guest there until its slot has come
	sends  []*send
}

// flyAcknowledged sends so many commands of the batch, the first ones, as fly does,
// and asks how many replicas have what they have written. WAIT speaks of one
// connection, so in a cluster each master gets its own commands as a pipeline; the
// client does not follow a redirection of those, so that is done here.
func (l *lane) flyAcknowledged(b *batch, n int) {
	sends := b.sends[:n]
	l.flyParties(b, l.routes.partiesOf(sends))
	if away := l.redirected(sends); len(away) > 0 {
		l.flyParties(b, l.routes.guests(away))
	}
}

// flyParties sends all of them at the same time.
func (l *lane) flyParties(b *batch, parties []*party) {
	if len(parties) == 0 {
		return
	}
	var others sync.WaitGroup
	for _, p := range parties[1:] {
		others.Go(func() { p.fly(b, l.routes.replicas) })
	}
	parties[0].fly(b, l.routes.replicas)
	others.Wait()
}

// fly sends the commands, and reads their replies and the word on the replicas.
// Where that does not come, nobody knows anything: then all may be sent again.
func (p *party) fly(b *batch, replicas command.Replicas) {
	cmds := make([]redis.Cmder, 0, 2*len(p.sends)+1)
	for _, s := range p.sends {
		if p.asking {
			cmds = append(cmds, command.New(0, []any{"asking"}))
		}
		cmds = append(cmds, s.command)
	}
	wait := replicas.WaitCommand()
	ctx, pipe := b.context(), p.server.Pipeline()
	_ = pipe.BatchProcess(ctx, append(cmds, wait)...) // it only gathers them
	_, whole := pipe.Exec(ctx)
	count, failed := wait.Reply(whole)
	unconfirmed := replicas.Confirm(count, failed)
	for _, s := range p.sends {
		value, err := s.command.Reply(whole)
		if err == nil && failed != nil && command.IsTransport(failed) {
			value, err = nil, failed
		}
		s.reply = Reply{Value: value, Err: err, Sent: b.begun, Unconfirmed: unconfirmed}
	}
}

// partiesOf divides commands by the masters that have their keys now. What has no
// master is not sent.
func (r *Pipeline) partiesOf(sends []*send) (parties []*party) {
	if r.cluster == nil {
		if len(sends) == 0 {
			return nil
		}
		return []*party{{server: r.rdb, sends: sends}}
	}
	of := make(map[*redis.Client]*party)
	for _, s := range sends {
		master, err := r.cluster.MasterForKey(context.Background(), string(s.of.Key))
		if err != nil {
			s.reply = Reply{Err: command.Unsent(err)}
			continue
		}
		p := of[master]
		if p == nil {
			p = &party{server: master}
			of[master] = p
			parties = append(parties, p)
		}
		p.sends = append(p.sends, s)
	}
	return parties
}

// redirected returns those commands that a master of a cluster has sent away, and
// that are still to be sent.
func (l *lane) redirected(sends []*send) (away []*send) {
	if l.routes.cluster == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range sends {
		if _, _, ok := redirection(s.reply.Err); ok && !s.of.settled {
			away = append(away, s)
		}
	}
	return away
}

// redirection reads an error by which a node of a cluster names another one, whose
// address it returns as the client writes it. asking is set while the slot is on its
// way there.
func redirection(err error) (address string, asking, ok bool) {
	if err == nil {
		return "", false, false
	}
	words := strings.Fields(err.Error())
	if len(words) != 3 || (words[0] != "MOVED" && words[0] != "ASK") {
		return "", false, false
	}
	address, asking = words[2], words[0] == "ASK"
	if colon := strings.LastIndexByte(address, ':'); colon >= 0 { // IPv6 comes without brackets
		address = net.JoinHostPort(strings.Trim(address[:colon], "[]"), address[colon+1:])
	}
	return address, asking, true
}

// guests divides commands that were sent away by the nodes that they were sent to.
// It has the client ask where the slots are, so it may take a while. A node that has
// no slot yet is not found: what was sent there keeps its error.
func (r *Pipeline) guests(away []*send) (parties []*party) {
	masters := r.ask()
	type place struct {
		address string
		asking  bool
	}
	of := make(map[place]*party)
	for _, s := range away {
		address, asking, _ := redirection(s.reply.Err)
		master := masters[address]
		if master == nil {
			continue
		}
		p := of[place{address, asking}]
		if p == nil {
			p = &party{server: master, asking: asking}
			of[place{address, asking}] = p
			parties = append(parties, p)
		}
		p.sends = append(p.sends, s)
	}
	return parties
}

// ask makes the client of a cluster ask where the slots are, and returns the
// masters that have some, by address.
func (r *Pipeline) ask() map[string]*redis.Client {
	var mu sync.Mutex
	masters := make(map[string]*redis.Client)
	_ = r.cluster.ForEachMaster(context.Background(), func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		masters[master.Options().Addr] = master
		return nil
	})
	return masters
}
