package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Behind ten dead waiters, a waiter gets the lock with the first release: no dead waiter costs
// a claim, and each costs one message of each kind at most. This holds for both kinds of
// clients on both sides, and for both kinds of leases.
func TestWaiterOfEitherKindGetsTheLockBehindDeadOnes(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	server.Grant(storetest.ClusterRights()...)
	rdb := server.Client(t)
	newCommands := monitor(t, server)
	var dead []string
	for i := range 10 {
		dead = append(dead, fmt.Sprintf("%s:1", strings.Repeat(fmt.Sprint(i), 32)))
	}
	for _, releases := range []string{"P", "S", "M"} {
		for _, waits := range []string{"P", "S"} {
			for kind, kindOf := range map[string]change{"exclusive": func(*storetest.AnyRequest) {}, "exclusive and apart": apart, "shared": limit(store.Unlimited)} {
				t.Run(fmt.Sprintf("%s waits for %s, %s", waits, releases, kind), func(t *testing.T) {
					s := newStore(t, rdb)
					s.setMode(releases)
					r := changed([]change{kindOf})
					r.Token = store.NewToken(storetest.Me, r.Limit, 1)
					if got, err := s.Enqueue(t.Context(), r); err != nil || !got.Granted {
						t.Fatalf("%+v, %v", got, err)
					}
					rdb.RPush(t.Context(), storetest.QueueName, append(slices.Clone(dead), storetest.Bob1))
					log := subscribeInMode(t, rdb, waits, storetest.Bob)
					newCommands()
					if got, err := s.Release(t.Context(), r); err != nil || got.Status != store.Handed {
						t.Errorf("%+v, %v", got, err)
					}
					sent := newCommands()
					storetest.State{Value: storetest.Bob1, TTL: storetest.Claim}.Check(t, rdb)
					if hints := log.end(t, rdb); !slices.Equal(hints, []string{storetest.Bob1 + " p:k"}) {
						t.Errorf("hints %q", hints)
					}
					for _, name := range []string{"PUBLISH", "SPUBLISH"} {
						if n := len(named(sent, name)); n > len(dead)+1 {
							t.Errorf("%d times %s", n, name)
						}
					}
					rdb.Del(t.Context(), storetest.LockName)
				})
			}
		}
	}
}

// A holder that listens in another way than the asking process expects receives a hint, too.
// Exception: in a cluster of many masters, PUBLISH would send it to all nodes.
func TestHolderOfEitherKindReceivesHint(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	server.Grant(storetest.ClusterRights()...)
	rdb := server.Client(t)
	for mode, want := range map[string]map[string]int{"P": {"P": 1, "S": 1}, "S": {"P": 1, "S": 1}, "B": {"P": 1, "S": 1}, "M": {"P": 0, "S": 1}} {
		for holds, want := range want {
			t.Run(fmt.Sprintf("%s holds, %s asks", holds, mode), func(t *testing.T) {
				s := newStore(t, rdb)
				s.setMode(mode)
				storetest.State{Value: storetest.Bob1, TTL: storetest.TTL}.Put(t, rdb)
				log := subscribeInMode(t, rdb, holds, storetest.Bob)
				if got := enqueue.run(t, s); got.granted || got.holder != storetest.Bob1 {
					t.Errorf("%+v", got)
				}
				if hints := log.end(t, rdb); len(hints) != want {
					t.Errorf("hints %q, want %d", hints, want)
				}
			})
		}
	}
}

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
			if got := release.run(t, s); got.status != store.Handed {
				t.Errorf("%+v", got)
			}
			if hints := log.end(t, rdb); !slices.Equal(hints, []string{storetest.Bob1 + " p:k"}) {
				t.Errorf("hints %q", hints)
			}
			before.Put(t, rdb)
			if got := release.run(t, s); got.status != store.Handed { // now no process listens
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
	if got := release.run(t, s); got.status != store.Freed {
		t.Errorf("%+v", got)
	}
}
