package pubsub

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// go-redis panics if a server replies to SUBSCRIBE by an array that is no message, or sends one
// later. The connection is made anew, and the process lives on. One warning says so.
func TestUnreadableMessageEndsItsConnectionOnly(t *testing.T) {
	t.Parallel()
	odd := []string{
		"*0\r\n", "*1\r\n:1\r\n", "*1\r\n$9\r\nsubscribe\r\n", "*2\r\n$10\r\nssubscribe\r\n$1\r\nc\r\n",
		"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n$1\r\nx\r\n", "*3\r\n$7\r\nmessage\r\n:1\r\n:1\r\n", "*1\r\n$4\r\npong\r\n",
	}
	for name, newClient := range map[string]func(addr string) redis.UniversalClient{
		"subscribe": func(addr string) redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: addr}) },
		"ssubscribe": func(addr string) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
					return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
				},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, err := server.NewServer("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(fake.Close)
			replies := make(chan string, 2*len(odd)+1) // to one subscription after the other
			confirmed := func(name, channel string) string {
				return fmt.Sprintf("*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:1\r\n", len(name), name, len(channel), channel)
			}
			for _, reply := range odd {
				replies <- reply
				replies <- "confirmed " + reply
			}
			replies <- "confirmed "
			if err := fake.Register(strings.ToUpper(name), func(c *server.Peer, _ string, channels []string) {
				reply, isConfirmed := strings.CutPrefix(<-replies, "confirmed ")
				if isConfirmed {
					reply = confirmed(name, channels[0]) + reply
				}
				c.WriteRaw(reply)
			}); err != nil {
				t.Fatal(err)
			}
			rdb := newClient(fake.Addr().String())
			t.Cleanup(func() { _ = rdb.Close() })
			s := newStore(t, rdb)
			s.shared.timing = quick
			if s.sharded != nil {
				s.sharded.timing = quick
			}
			ready, stop := s.Listen("k")
			defer stop()
			suite.Eventually(t, "the last subscription is confirmed", func() bool {
				ready, stop := s.Listen("k")
				defer stop()
				return len(replies) == 0 && suite.IsClosed(ready)
			})
			suite.AwaitClosed(t, "ready", ready)
			if got := suite.Receive(t, "a warning", s.warned); got != errUnreadable { //nolint:errorlint // the very error
				t.Errorf("warned of %v", got)
			}
		})
	}
}
