package command

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Receive is conn.Receive. go-redis panics if a server, or a proxy before it, sends an array
// that is no message. Then the error is an *UnexpectedReplyError: see IsTransport.
func Receive(ctx context.Context, conn *redis.PubSub) (reply any, err error) {
	defer func() {
		if recover() != nil {
			reply, err = nil, UnexpectedReply([]any{})
		}
	}()
	return conn.Receive(ctx)
}
