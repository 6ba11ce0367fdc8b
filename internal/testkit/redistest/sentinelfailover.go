package redistest

import (
	"context"
	"fmt"
	"time"
)

// orderPatience is how long an order takes effect, if it does.
const orderPatience = 2 * time.Second

// Failover kills the master and returns the replica that was promoted, when all
// that runs is healthy with it. What the master had not yet sent to its
// replicas is lost: RefuseReplicas makes sure of it. Restart brings the killed
// server back, and the sentinels make it a replica.
func (s *Sentinels) Failover() *Server {
	s.tb.Helper()
	master := s.Master()
	master.Kill()
	return s.AwaitFailover(master)
}

// Switch tells the sentinels to replace the master although nothing is wrong
// with it, and returns the new master, when all is healthy with the old one as
// a replica. What the old master was told in between is lost.
func (s *Sentinels) Switch() *Server {
	s.tb.Helper()
	return s.replace(s.Master())
}

// Split makes two masters: a replica is promoted, but the old master is not
// told, as if the sentinels and the replicas could not reach it while some
// clients can. It returns the new master, when all but the old one is healthy
// with it.
//
// Until Heal the old master takes what its clients tell it, and then loses it.
// Clients of the sentinels are sent to the new one.
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

// cutOffShare is the part of the time for which a replica was cut off that a server may
// be silent at least. A sentinel promotes no replica that had lost its master more than
// ten of the periods in which a server may be silent before the sentinel found the
// master down. A third leaves two thirds of these ten to a busy machine.
const cutOffShare = 3

// AwaitFailover returns the new master when this one, which the test has killed
// or paused, was replaced and all that runs is healthy. Until then the sentinels do
// not put up with a server that is silent. They wait longer if the replicas were cut
// off for more than a moment, since they would promote none of them.
func (s *Sentinels) AwaitFailover(master *Server) *Server {
	s.tb.Helper()
	s.mayBeSilent(max(downAfter, s.cutOff()/cutOffShare), downStep)
	var promoted *Server
	s.all().await(s.tb, "a failover", func(ctx context.Context) (err error) {
		promoted, err = s.replaced(ctx, master)
		return err
	})
	s.mayBeSilent(calm, 0)
	return promoted
}

// replaced returns the new master, or an error unless all that runs is healthy
// with another master than this.
func (s *Sentinels) replaced(ctx context.Context, master *Server) (*Server, error) {
	promoted, err := s.healthy(ctx)
	if promoted == master {
		err = fmt.Errorf("%s is still the master", master.Addr())
	}
	return promoted, err
}

// replace tells one of the sentinels to replace the master, and returns the new
// one, when all that runs is healthy with it.
//
// A sentinel gives an order up if it has not heard of the replicas for a moment, as
// on a busy machine. So the order is repeated while all still name the old master.
//
// A server that has said for four periods of publishing that it is a master, and should
// be a replica, is made one. The one that was promoted must not be, by a sentinel to
// which it has said so before the order of it was told; the old one must, if it may.
func (s *Sentinels) replace(master *Server) *Server {
	s.tb.Helper()
	s.publishEvery(time.Hour)
	var ordered time.Time
	s.all().await(s.tb, "an ordered failover", func(ctx context.Context) error {
		named, err := s.agreed(ctx)
		if err != nil || named != master {
			return err
		}
		if time.Since(ordered) > orderPatience {
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

// mayBeSilent sets for how long a server may be silent: the period, and a step more
// for each sentinel but the first.
func (s *Sentinels) mayBeSilent(period, step time.Duration) {
	s.tb.Helper()
	for _, watcher := range s.watch.up() {
		watcher.tell("SENTINEL", "SET", MasterName, "down-after-milliseconds", period.Milliseconds())
		period += step
	}
}

// publishEvery sets how often the sentinels introduce themselves to each other.
func (s *Sentinels) publishEvery(period time.Duration) {
	s.tb.Helper()
	for _, watcher := range s.watch.up() {
		watcher.tell("SENTINEL", "DEBUG", "publish-period", period.Milliseconds())
	}
}
