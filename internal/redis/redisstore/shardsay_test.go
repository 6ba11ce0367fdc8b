package redisstore

import (
	"slices"
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The channel is told by the line's name, so it is right for each form of it.
func TestScriptsSayItOnTheChannelThatIsListenedOn(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
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

// Where SPUBLISH is no command, or is forbidden, nobody can be counted.
func TestWhereSPublishIsRefusedItIsPublished(t *testing.T) {
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
			audit := listenAs(t, rdb, storetest.Bob)
			if got := release(t, s); got.end != store.Handed {
				t.Errorf("%+v", got)
			}
			if said := audit.heard(t, rdb); !slices.Equal(said, []string{storetest.Bob1 + " p:k"}) {
				t.Errorf("said %q", said)
			}
			before.Put(t, rdb)
			if got := release(t, s); got.end != store.Handed { // to one who cannot be counted
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestWhereBothAreRefusedNobodyListens(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t, "--user", "default", "on", "nopass", "~*", "&*", "+@all", "-spublish", "-publish").Client(t)
	s := newStore(t, rdb)
	s.setMode("S")
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL, Queue: []string{storetest.Bob1}}.Put(t, rdb)
	if got := release(t, s); got.end != store.Freed {
		t.Errorf("%+v", got)
	}
}
