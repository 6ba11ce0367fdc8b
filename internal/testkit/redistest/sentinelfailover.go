package redistest

import (
	"context"
	"fmt"
	"time"
)

// orderTimeout is how long an ordered failover takes to begin, if it does.
const orderTimeout = 2 * time.Second

// Failover kills the master, and returns the promoted replica when all running processes are
// healthy. Writes that the replicas had not received are lost: RefuseReplicas ensures that.
// After a Restart of the killed server, the sentinels make it a replica.
func (s *Sentinels) Failover() *Server {
	s.tb.Helper()
	master := s.Master()
	master.Kill()
	return s.AwaitFailover(master)
}

// Switch orders the sentinels to replace the healthy master. It returns the new master when
// all is healthy, with the old master as a replica. Writes to the old master meanwhile are
// lost.
func (s *Sentinels) Switch() *Server {
	s.tb.Helper()
	return s.replace(s.Master())
}

// Split makes two masters: a replica is promoted, but the old master does not learn of it, as
// if the sentinels and the replicas could not reach the old master while some clients can.
// It returns the new master when all is healthy except the old master.
//
// Until Heal the old master accepts writes, and Heal loses them. The sentinels send their
// clients to the new master.
func (s *Sentinels) Split() *Server {
	s.tb.Helper()
	master := s.Master()
	master.RefuseReplicas(true)
	s.split = master
	return s.replace(master)
}

// Heal ends what Split began: the old master becomes a replica. It returns when
// all is healthy.
func (s *Sentinels) Heal() {
	s.tb.Helper()
	if s.split == nil {
		s.tb.Fatalf("heal sentinels: they are not split")
	}
	s.split.RefuseReplicas(false)
	s.split = nil
	s.publishEvery(publishPeriod)
	s.Await()
}

// cutOffShare determines the timeout of a server after a time in which a replica was cut
// off: at least this fraction of that time. A sentinel promotes no replica that had lost its
// master more than ten timeouts before the sentinel found the master down. A third leaves
// room for a busy machine.
const cutOffShare = 3

// AwaitFailover returns the new master when this master, which the test has killed or
// paused, was replaced, and all running processes are healthy. Until then the timeout of a
// server is short. It is longer if the replicas were cut off for a while, because the
// sentinels would promote none of them.
func (s *Sentinels) AwaitFailover(master *Server) *Server {
	s.tb.Helper()
	s.setTimeout(max(downAfter, s.cutOff()/cutOffShare), downStep)
	var promoted *Server
	s.all().await(s.tb, "a failover", func(ctx context.Context) (err error) {
		promoted, err = s.replaced(ctx, master)
		return err
	})
	s.setTimeout(idleTimeout, 0)
	return promoted
}

// replaced returns the new master, or an error unless all running processes are healthy with
// another master than this.
func (s *Sentinels) replaced(ctx context.Context, master *Server) (*Server, error) {
	promoted, err := s.healthy(ctx)
	if promoted == master {
		err = fmt.Errorf("%s is still the master", master.Addr())
	}
	return promoted, err
}

// replace orders one of the sentinels to replace the master. It returns the new master when
// all running processes are healthy.
//
// A sentinel drops an order if it has had no data about the replicas for a moment, as on a
// busy machine. So the order is repeated while all sentinels still name the old master.
//
// A sentinel demotes a server that has reported for four publish periods that it is a
// master, and should be a replica. It must not demote the promoted server. It may
// learn of the promotion after reports of that server. So the period is long until all
// sentinels name the new master. Then they demote the old master, except during a split.
func (s *Sentinels) replace(master *Server) *Server {
	s.tb.Helper()
	s.publishEvery(time.Hour)
	var ordered time.Time
	s.all().await(s.tb, "an ordered failover", func(ctx context.Context) error {
		named, err := s.agreed(ctx)
		if err != nil || named != master {
			return err
		}
		if time.Since(ordered) > orderTimeout {
			ordered = time.Now()
			if err := s.watch.up()[0].admin().Do(ctx, "SENTINEL", "FAILOVER", MasterName).Err(); err != nil {
				return fmt.Errorf("SENTINEL FAILOVER: %w", err)
			}
		}
		return fmt.Errorf("%s is still the master", master.Addr())
	})
	if s.split == nil {
		s.publishEvery(publishPeriod)
	}
	var promoted *Server
	s.all().await(s.tb, "health after a failover", func(ctx context.Context) (err error) {
		promoted, err = s.replaced(ctx, master)
		return err
	})
	return promoted
}

// setTimeout sets the timeout of a server: the period, and a step more for each sentinel
// except the first.
func (s *Sentinels) setTimeout(period, step time.Duration) {
	s.tb.Helper()
	for _, watcher := range s.watch.up() {
		watcher.mustRun("SENTINEL", "SET", MasterName, "down-after-milliseconds", period.Milliseconds())
		period += step
	}
}

func (s *Sentinels) publishEvery(period time.Duration) {
	s.tb.Helper()
	for _, watcher := range s.watch.up() {
		watcher.mustRun("SENTINEL", "DEBUG", "publish-period", period.Milliseconds())
	}
}
