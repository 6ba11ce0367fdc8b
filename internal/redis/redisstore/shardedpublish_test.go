package redisstore

import (
	"slices"
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The scripts make the name of the channel from the name of the queue. It must be right for each
// form of a key.
func TestScriptsPublishOnTheChannelOfTheSubscription(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	server.Grant(storetest.ClusterRights()...)
	rdb := server.Client(t)
	for _, key := range []string{"k", "{user}:cart", "a}b", "open{brace", "a:q", "q", "{a}:q", "with\r\nbreaks"} {
		t.Run(key, func(t *testing.T) {
			s := newStore(t, rdb)
			s.setMode("S")
			channel := s.names.ShardChannel(s.names.Lock(key), storetest.Bob)
			bobs := rdb.SSubscribe(t.Context(), channel)
			defer func() { _ = bobs.Close() }()
			if _, err := bobs.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			r, q := storetest.Request(storetest.Me1), storetest.Request(storetest.Bob1)
			r.Key, q.Key = key, key
			for _, r := range []storetest.AnyRequest{r, q} {
				if _, err := s.Enqueue(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := s.Release(t.Context(), r); err != nil || got.Status != store.Handed {
				t.Errorf("%+v, %v", got, err)
			}
			if m, err := bobs.ReceiveMessage(t.Context()); err != nil || m.Payload != storetest.Bob1+" "+s.names.Lock(key) {
				t.Errorf("%v, %v", m, err)
			}
		})
	}
}

// If SPUBLISH is unknown or forbidden, the scripts use PUBLISH, which does not count all
// subscribers. So every waiter may get the key.
func TestPublishReplacesRefusedSPublish(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"unknown":   {"--rename-command", "SPUBLISH", ""},
		"forbidden": {"--user", "default", "on", "nopass", "~*", "&*", "+@all", "-spublish"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Start(t, args...).Client(t)
			s := newStore(t, rdb)
			s.setMode("S")
			before := storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1, storetest.Eve1}}
			before.Put(t, rdb)
			log := subscribeAs(t, rdb, storetest.Bob)
			if got := release(t, s); got.status != store.Handed {
				t.Errorf("%+v", got)
			}
			if hints := log.end(t, rdb); !slices.Equal(hints, []string{storetest.Bob1 + " p:k"}) {
				t.Errorf("hints %q", hints)
			}
			before.Put(t, rdb)
			if got := release(t, s); got.status != store.Handed { // now no process listens
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestNoWaiterListensIfPublishIsRefused(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t, "--user", "default", "on", "nopass", "~*", "&*", "+@all", "-spublish", "-publish").Client(t)
	s := newStore(t, rdb)
	s.setMode("S")
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}}.Put(t, rdb)
	if got := release(t, s); got.status != store.Freed {
		t.Errorf("%+v", got)
	}
}
