package wire

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// dialTimeout is how long a connection may take to come up.
const dialTimeout = 5 * time.Second

// Deadlines makes a client heed the deadlines of contexts.
func Deadlines(o *redis.UniversalOptions) { o.ContextTimeoutEnabled = true }

// NewClient returns a go-redis client whose commands are counted: a *redis.Client
// of one address, and a *redis.ClusterClient of the nodes of a cluster. It has the
// defaults, apart from what configure changes.
func NewClient(addrs []string, commands *Counter, configure ...func(*redis.UniversalOptions)) redis.UniversalClient {
	options := &redis.UniversalOptions{
		Addrs: addrs,
		Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return commands.Dial(ctx, &net.Dialer{Timeout: dialTimeout}, addr)
		},
	}
	for _, change := range configure {
		change(options)
	}
	return redis.NewUniversalClient(options)
}

// NewClients returns a client as NewClient does for each address, of a server that
// knows nothing of the others.
func NewClients(addrs []string, commands *Counter, configure ...func(*redis.UniversalOptions)) []redis.UniversalClient {
	clients := make([]redis.UniversalClient, len(addrs))
	for i, addr := range addrs {
		clients[i] = NewClient([]string{addr}, commands, configure...)
	}
	return clients
}

// Close closes clients.
func Close(clients []redis.UniversalClient) error {
	var errs []error
	for _, client := range clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}
