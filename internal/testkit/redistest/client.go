package redistest

import (
	"errors"
	"io"
	"testing"

	"github.com/redis/go-redis/v9"
)

// newClient returns a client that lives as long as tb.
//
// The options are the defaults of go-redis, except the given ones and those that configure
// changes. In particular MaxRetries keeps its default, which production code has, too: a
// lock must be correct although go-redis sends commands twice.
func newClient(tb testing.TB, options redis.Options, administrator string, configure []func(*redis.Options)) *redis.Client {
	tb.Helper()
	for _, change := range configure {
		change(&options)
	}
	return open(tb, administrator, &options.Username, &options.Password, func() *redis.Client {
		o := options
		return redis.NewClient(&o)
	})
}

// open returns a client that lives as long as tb. connect creates it with the options that
// contain username and password.
//
// If the server restricts the default user, administrator is the user that sends the
// commands of the test itself: see route.
func open[C redis.UniversalClient](tb testing.TB, administrator string, username, password *string, connect func() C) C {
	tb.Helper()
	client := connect()
	closeWith(tb, client)
	if administrator != "" && *username == "" && *password == "" {
		*username, *password = administrator, noPassword
		admin := connect()
		closeWith(tb, admin)
		route(tb, client, admin)
	}
	return client
}

func closeWith(tb testing.TB, client io.Closer) {
	tb.Helper()
	tb.Cleanup(func() {
		// The test may have closed the client itself.
		if err := client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			tb.Errorf("close redis client: %v", err)
		}
	})
}
