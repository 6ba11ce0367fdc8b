package redistest

import (
	"errors"
	"io"
	"testing"

	"github.com/redis/go-redis/v9"
)

// newClient returns a client that lives as long as tb.
//
// The options are those of go-redis apart from what is given and what configure
// changes. In particular MaxRetries stays at its default: code in production
// runs with it, and a lock must be right although commands are sent twice.
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

// open returns a client that lives as long as tb, as connect makes it of options
// of which username and password are a part.
//
// Where the server restricts clients that do not sign in, administrator is the
// user as whom the test's own commands are sent: see route.
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

// closeWith closes the client in the cleanup of tb.
func closeWith(tb testing.TB, client io.Closer) {
	tb.Helper()
	tb.Cleanup(func() {
		// The test may have closed the client itself, as a part of its story.
		if err := client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			tb.Errorf("close redis client: %v", err)
		}
	})
}
