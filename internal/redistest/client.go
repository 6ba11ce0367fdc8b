package redistest

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
)

// newClient returns a client of addr that lives as long as tb.
//
// The options are those of go-redis apart from what configure changes. In
// particular MaxRetries stays at its default: code in production runs with
// it, and a lock must be right although commands are sent twice.
func newClient(tb testing.TB, addr string, configure []func(*redis.Options)) *redis.Client {
	tb.Helper()
	options := &redis.Options{Addr: addr}
	for _, change := range configure {
		change(options)
	}
	client := redis.NewClient(options)
	tb.Cleanup(func() {
		// The test may have closed the client itself, as a part of its story.
		if err := client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			tb.Errorf("close redis client: %v", err)
		}
	})
	return client
}
