package redisstore

import (
	"slices"
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// The channel is told by the line's name, so it is right for each form of it.
func TestScriptsSayItOnTheChannelThatIsListenedOn(t *testing.T) {
	server := redistest.Start(t)
	server.Grant(clusterRights()...)
	rdb := server.Client(t)
	for _, key := range []string{"k", "{user}:cart", "a}b", "open{brace", "a:q", "q", "{a}:q", "with\r\nbreaks"} {
		t.Run(key, func(t *testing.T) {
			s := newStore(t, rdb)
			s.mode.Store("S")
			channel := s.names.shardChannel(s.names.lock(key), bob)
			bobs := rdb.SSubscribe(t.Context(), channel)
			defer func() { _ = bobs.Close() }()
			if _, err := bobs.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			r, q := request(me1), request(bob1)
			r.Key, q.Key = key, key
			for _, r := range []store.Request{r, q} {
				if _, err := s.Enqueue(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := s.Release(t.Context(), r); err != nil || got.End != store.Handed {
				t.Errorf("%+v, %v", got, err)
			}
			if m, err := bobs.ReceiveMessage(t.Context()); err != nil || m.Payload != bob1+" "+s.names.lock(key) {
				t.Errorf("%v, %v", m, err)
			}
		})
	}
}

// Where SPUBLISH is no command, or is forbidden, nobody can be counted.
func TestWhereSPublishIsRefusedItIsPublished(t *testing.T) {
	tests := map[string][]string{
		"unknown":   {"--rename-command", "SPUBLISH", ""},
		"forbidden": {"--user", "default", "on", "nopass", "~*", "&*", "+@all", "-spublish"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			rdb := redistest.Start(t, args...).Client(t)
			s := newStore(t, rdb)
			s.mode.Store("S")
			before := state{value: me1, ttl: ttl, line: []string{bob1, eve1}}
			before.put(t, rdb)
			audit := listenAs(t, rdb, bob)
			if got := release(t, s); got.end != store.Handed {
				t.Errorf("%+v", got)
			}
			if said := audit.heard(t, rdb); !slices.Equal(said, []string{bob1 + " p:k"}) {
				t.Errorf("said %q", said)
			}
			before.put(t, rdb)
			if got := release(t, s); got.end != store.Handed { // to one who cannot be counted
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestWhereBothAreRefusedNobodyListens(t *testing.T) {
	rdb := redistest.Start(t, "--user", "default", "on", "nopass", "~*", "&*", "+@all", "-spublish", "-publish").Client(t)
	s := newStore(t, rdb)
	s.mode.Store("S")
	state{value: me1, ttl: ttl, line: []string{bob1}}.put(t, rdb)
	if got := release(t, s); got.end != store.Freed {
		t.Errorf("%+v", got)
	}
}
