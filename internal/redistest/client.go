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
//
// Where the server restricts clients that do not sign in, administrator is the
// user as whom the test's own commands are sent: see route.
func newClient(tb testing.TB, options redis.Options, administrator string, configure []func(*redis.Options)) *redis.Client {
	tb.Helper()
	for _, change := range configure {
		change(&options)
	}
	client := redis.NewClient(&options)
	closeWith(tb, client)
	if administrator != "" && options.Username == "" && options.Password == "" {
		options.Username, options.Password = administrator, noPassword
		admin := redis.NewClient(&options)
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
