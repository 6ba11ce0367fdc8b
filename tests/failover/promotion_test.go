package failover

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A promotion is when another server becomes a master.
type promotion struct {
	done chan struct{} // closed when at is set, or the test has failed
	at   time.Time
}

// watchPromotion polls the roles of the replicas.
func (s *scenario) watchPromotion() {
	masters := s.masters()
	var replicas []*redis.Client
	for _, server := range s.servers() {
		if !slices.ContainsFunc(masters, func(m *redistest.Server) bool { return m == server }) {
			replicas = append(replicas, server.Client(s.t, func(o *redis.Options) { o.MaxRetries = -1 }))
		}
	}
	s.group.Go(func() {
		defer close(s.promotion.done)
		ctx, cancel := context.WithTimeout(s.ctx, patience)
		defer cancel()
		for ctx.Err() == nil {
			for _, replica := range replicas {
				if role, err := replica.Do(ctx, "ROLE").Slice(); err == nil && role[0] == "master" {
					s.promotion.at = time.Now()
					return
				}
			}
			time.Sleep(2 * time.Millisecond)
		}
		s.t.Error("no replica was promoted")
	})
}
