package wire

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// dialTimeout bounds a dial.
const dialTimeout = 5 * time.Second

// Deadlines makes a client respect the deadlines of contexts.
func Deadlines(o *redis.UniversalOptions) { o.ContextTimeoutEnabled = true }

// NewClient returns a go-redis client that counts its commands: a *redis.Client for one
// address, and a *redis.ClusterClient for the nodes of a cluster. It has default options,
// except for those that configure changes.
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

// NewClients returns one client like NewClient for each address of an independent server.
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
