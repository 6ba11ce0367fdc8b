package resharding

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// A traffic counts what the nodes of a cluster answer to clients, where that has
// to do with slots that move. It is safe for concurrent use.
type traffic struct{ moved, asked, again atomic.Int64 }

// watch counts what the client's commands are answered.
func (n *traffic) watch(rdb *redis.ClusterClient) {
	rdb.OnNewNode(func(node *redis.Client) { node.AddHook(tap{n}) })
}

// note counts the answer to a command.
func (n *traffic) note(err error) {
	if err == nil {
		return
	}
	switch word, _, _ := strings.Cut(err.Error(), " "); word {
	case "MOVED":
		n.moved.Add(1)
	case "ASK":
		n.asked.Add(1)
	case "TRYAGAIN":
		n.again.Add(1)
	}
}

// A tap sees the commands of one node.
type tap struct{ traffic *traffic }

func (tap) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p tap) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		p.traffic.note(err)
		return err
	}
}

func (p tap) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			p.traffic.note(cmd.Err())
		}
		return err
	}
}
