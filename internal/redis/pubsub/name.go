package pubsub

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// named returns a client whose next connections of a subscription have the name. It shares the pools,
// the hooks and the limits of rdb, whose own connections keep their names. It is rdb itself if there
// is no name, or if rdb is a cluster or is wrapped by another type, which may change what Subscribe
// does.
//
// HELLO sets the name, not CLIENT SETNAME: an ACL cannot refuse HELLO to a user. If the server does
// not know HELLO, or a proxy refuses it, the connection has no name.
func named(rdb redis.UniversalClient, name string) redis.UniversalClient {
	client, ok := rdb.(*redis.Client)
	if name == "" || !ok {
		return rdb
	}
	from := client.Options()
	clone := client.WithTimeout(from.ReadTimeout) // the only function that copies the options
	o := clone.Options()
	o.WriteTimeout = from.WriteTimeout
	before := o.OnConnect
	o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
		if before != nil {
			if err := before(ctx, conn); err != nil {
				return err
			}
		}
		_ = conn.Hello(ctx, o.Protocol, "", "", name).Err()
		return nil
	}
	return clone
}
