package resharding

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// redirects counts the replies of nodes to commands for slots that move. It is safe for
// concurrent use.
type redirects struct{ moved, ask, tryAgain atomic.Int64 }

// watch counts the replies to the client's commands.
func (r *redirects) watch(rdb *redis.ClusterClient) {
	rdb.OnNewNode(func(node *redis.Client) { node.AddHook(redirectHook{r}) })
}

// count counts the reply to a command.
func (r *redirects) count(err error) {
	if err == nil {
		return
	}
	switch code, _, _ := strings.Cut(err.Error(), " "); code {
	case "MOVED":
		r.moved.Add(1)
	case "ASK":
		r.ask.Add(1)
	case "TRYAGAIN":
		r.tryAgain.Add(1)
	}
}

// A redirectHook counts the replies of one node.
type redirectHook struct{ redirects *redirects }

func (redirectHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h redirectHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.redirects.count(err)
		return err
	}
}

func (h redirectHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			h.redirects.count(cmd.Err())
		}
		return err
	}
}
