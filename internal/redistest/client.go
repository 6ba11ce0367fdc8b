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
func newClient(tb testing.TB, options redis.Options, configure []func(*redis.Options)) *redis.Client {
	tb.Helper()
	for _, change := range configure {
		change(&options)
	}
	client := redis.NewClient(&options)
	closeWith(tb, client)
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
