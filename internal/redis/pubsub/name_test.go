package pubsub

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// The subscription has its name, also without the right to CLIENT SETNAME and with both protocols. The
// connections of the program have their own names, also those that are made later.
func TestOnlyTheSubscriptionIsNamed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := redistest.AdminClient(t, server.Addr())
	if err := admin.Do(t.Context(), "acl", "setuser", "alice", "on", "nopass", "~*", "&*", "+@all", "-client|setname").Err(); err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []int{2, 3} {
		connected := 0
		rdb := server.Client(t, func(o *redis.Options) {
			o.Username, o.Password, o.Protocol = "alice", "any", protocol
			o.OnConnect = func(context.Context, *redis.Conn) error { connected++; return nil }
		})
		s := newStore(t, rdb)
		s.SetName("reqlock-me")
		ready, stop := s.Listen("k")
		suite.AwaitClosed(t, "ready", ready)
		if name, err := rdb.Conn().ClientGetName(t.Context()).Result(); err == nil || name != "" || connected != 2 {
			t.Errorf("protocol %d: a connection of the program has the name %q (%v), OnConnect was called %d times", protocol, name, err, connected)
		}
		list := admin.ClientList(t.Context()).Val()
		if n := strings.Count(list, " name=reqlock-me "); n != 1 {
			t.Errorf("protocol %d: %d connections have the name:\n%s", protocol, n, list)
		}
		stop()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		suite.Eventually(t, "the connection ends", func() bool { return !strings.Contains(admin.ClientList(t.Context()).Val(), "reqlock-me") })
	}
}
