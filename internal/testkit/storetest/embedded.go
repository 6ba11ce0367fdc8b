package storetest

import (
	"context"
	"net"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Embedded returns a client of an embedded Redis without a network, for a bubble of
// testing/synctest. The hook gets each command first, also those of scripts. It returns
// whether it has answered the command. A hook that blocks holds the command.
//
// All goroutines of the bubble wait before its time advances. So by then everything has happened
// that a held command does not prevent.
func Embedded(tb testing.TB, hook server.Hook) *redis.Client {
	tb.Helper()
	embedded := miniredis.NewMiniRedis()
	tb.Cleanup(embedded.Close)
	rdb := redis.NewClient(&redis.Options{
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			conn, err := embedded.Dial() // the first call starts the server
			if err == nil {
				embedded.Server().SetPreHook(hook)
			}
			return conn, err
		},
		MaxRetries:               -1,
		ReadTimeout:              -2,
		WriteTimeout:             -2,
		ConnMaxIdleTime:          -1,
		PoolSize:                 1000, // a client that waits for a connection uses a timer that others share
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
