package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// errAborted is the cause of the context of a scenario that ended early, because the test
// has failed.
var errAborted = errors.New("the scenario is aborted")

// A scenario is one failure of one master, and what callers do meanwhile.
type scenario struct {
	*deployment
	t       *testing.T
	name    string // of its keys
	failure failure
	master  *redistest.Server
	ledger  *ledger
	history *history.Recorder

	ctx       context.Context // ends with the scenario, also if it is aborted
	failed    chan struct{}   // closed when the master has failed
	at        time.Time       // when the master failed; set before failed is closed
	healthyAt time.Time       // when the other servers were healthy with another master
	group     sync.WaitGroup
	lateness  atomic.Int64 // the longest delay of a timer, in nanoseconds
	figures   figures

	promotion promotion
}

// A part is what some callers do in a scenario.
type part interface {
	start()    // before the failure
	prepare()  // shortly before the failure
	replaced() // there is another master, and the old one is not repaired yet
	finish()   // the deployment is healthy: check the results
}

// figures are the measurements of a scenario, a line of the table. Times count from the
// failure.
type figures struct {
	promoted, first, last, healthy time.Duration // of the new master, its first run, the last waiter served, a healthy deployment
	hereGap, thereGap              time.Duration // the longest time without a run on a key of the master, and of another
	thereRuns                      int           // how many requests ran at other masters before first
	notes                          []string
}

func (f *figures) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

const figuresHead = "promoted    first      all  healthy      gap  gap elsewhere, runs there"

func (f figures) String() string {
	return fmt.Sprintf("%8v %8v %8v %8v %8v %8v %6d  %s", round(f.promoted), round(f.first), round(f.last),
		round(f.healthy), round(f.hereGap), round(f.thereGap), f.thereRuns, strings.Join(f.notes, "; "))
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func (s *scenario) newService(number int, wait time.Duration, opts ...core.Option) *service {
	s.t.Helper()
	return newService(s.t, newProcess(s.t, s.client(s.t, number, nil), opts...), s.ledger, wait)
}

func (s *scenario) newProcess(number int, opts ...core.Option) *process {
	s.t.Helper()
	return newProcess(s.t, s.client(s.t, number, nil), opts...)
}

func (s *scenario) run() {
	s.t.Helper()
	var cancel context.CancelCauseFunc
	s.ctx, cancel = context.WithCancelCause(context.Background())
	defer s.group.Wait()
	defer cancel(errAborted)
	s.failure.before(s.deployment, s.master)
	handOffs := &handOffs{scenario: s}
	parts := []part{&holders{scenario: s}, handOffs, &waiters{scenario: s}, &commits{scenario: s}, &multiKey{scenario: s}, &traffic{scenario: s}}
	const quiet = 4 // the parts after these send requests continuously, which costs CPU time
	for _, p := range parts[:quiet] {
		p.start()
	}
	handOffs.settle()
	for _, p := range parts[quiet:] {
		p.start()
	}
	s.awaitReplicas()
	for _, p := range parts {
		p.prepare()
	}
	s.awaitReplicas()
	s.watchPromotion()
	s.at = time.Now()
	s.failure.fail(s.deployment, s.master)
	close(s.failed)
	s.failure.replace(s.deployment, s.master)
	s.healthyAt = time.Now()
	for _, p := range parts {
		p.replaced()
	}
	s.failure.repair(s.deployment, s.master)
	suite.AwaitClosed(s.t, "a replica is promoted", s.promotion.done)
	s.figures.healthy, s.figures.promoted = s.healthyAt.Sub(s.at), s.promotion.at.Sub(s.at)
	for _, p := range slices.Backward(parts) { // the holders finish last
		p.finish()
	}
	cancel(nil)
	s.group.Wait()

	h := s.history.History()
	overlaps, exclusion := h.Holds().Overlaps(), []string{}
	for _, overlap := range overlaps {
		if s.failure.loss == nothing || !overlap.First.Lost && !overlap.Second.Lost {
			exclusion = append(exclusion, overlap.String())
		}
	}
	history.Report(s.t, h, map[string][]string{"exclusion": exclusion, "fences": h.Holds().Fences()})
	s.figures.note("%d overlaps", len(overlaps))
}

// isAborted reports whether the scenario is aborted, so that errors of callers are expected.
func (s *scenario) isAborted() bool { return errors.Is(context.Cause(s.ctx), errAborted) }

// awaitReplicas returns when the replicas have all writes, unless they are cut off.
func (s *scenario) awaitReplicas() {
	if s.failure.loss != all {
		s.await()
	}
}

// A promotion is when another server becomes a master.
type promotion struct {
	done chan struct{} // closed when at is set, or the test has failed
	at   time.Time
}

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
