package redisstore

import (
	"fmt"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/internal/redistest"
	"github.com/reqlock/reqlock/internal/store"
)

// A client that looks into a command to find its node finds its key, alone and in
// a batch, and each command leaves on the lanes of its master.
func TestAClusterIsAskedAtTheRightNode(t *testing.T) {
	rdb := redistest.StartCluster(t).Client(t)
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
	if got := len(s.masters); got != 3 {
		t.Errorf("%d masters have lanes of their own", got)
	}
}
