package wire

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// dialTimeout is how long a connection may take to come up.
const dialTimeout = 5 * time.Second

// NewClient returns a go-redis client with its defaults, whose commands are
// counted.
func NewClient(addr string, commands *Counter) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr,
		Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return commands.Dial(ctx, &net.Dialer{Timeout: dialTimeout}, addr)
		},
	})
}
