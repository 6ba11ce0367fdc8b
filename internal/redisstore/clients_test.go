package redisstore

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redistest"
	"github.com/reqlock/reqlock/internal/store"
)

// Clients that look into a command to find its node find its key.
func TestARingAndAClusterAreAskedAtTheRightNode(t *testing.T) {
	clients := map[string]func(*testing.T) redis.UniversalClient{
		"ring": func(t *testing.T) redis.UniversalClient {
			t.Helper()
			return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{
				"a": redistest.Start(t).Addr(), "b": redistest.Start(t).Addr(), "c": redistest.Start(t).Addr(),
			}})
		},
		"cluster": func(t *testing.T) redis.UniversalClient {
			t.Helper()
			server := redistest.Start(t, "--cluster-enabled", "yes")
			direct := server.Client(t)
			if err := direct.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
				t.Fatal(err)
			}
			for !strings.Contains(direct.ClusterInfo(t.Context()).Val(), "cluster_state:ok") {
				time.Sleep(10 * time.Millisecond)
			}
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
		},
	}
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			rdb := client(t)
			t.Cleanup(func() { _ = rdb.Close() })
			s := newStore(t, rdb)
			const workers, rounds = 8, 15
			var group sync.WaitGroup
			for w := range workers {
				group.Go(func() {
					for i := range rounds {
						r := request(fmt.Sprintf("%s:%d", me, w*rounds+i))
						r.Key, r.Inline, r.Alone = fmt.Sprint("key", w), i%2 == 0, i%3 == 0
						do := s.Take
						if i%5 == 0 {
							do, r.Fences = s.Enqueue, i%10
						}
						got, err := do(t.Context(), r)
						if err != nil || !got.Granted {
							t.Errorf("%+v, %v", got, err)
						}
						if v := rdb.Get(t.Context(), "p:"+r.Key).Val(); v != r.Token {
							t.Errorf("%s: %q, want %q", r.Key, v, r.Token)
						}
						q := r
						q.Token = eve1
						if got, err := s.Take(t.Context(), q); err != nil || got.Holder != r.Token {
							t.Errorf("refused: %+v, %v", got, err)
						}
						if renewal, err := s.Renew(t.Context(), r); err != nil || !renewal.Held {
							t.Errorf("renew: %+v, %v", renewal, err)
						}
						if released, err := s.Release(t.Context(), r); err != nil || released.End != store.Freed {
							t.Errorf("release: %+v, %v", released, err)
						}
					}
				})
			}
			group.Wait()
		})
	}
}
