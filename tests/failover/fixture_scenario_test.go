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
	"github.com/reqlock/reqlock/tests/internal/clock"
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

	ctx      context.Context // ends with the scenario, also if it is aborted
	failed   chan struct{}   // closed when the master has failed
	promoted chan struct{}   // closed when a replica was promoted, or the test has failed
	group    sync.WaitGroup
	lateness atomic.Int64 // the longest delay of a timer, in nanoseconds
	notes    []string     // on the results

	// Readings of package clock. Each is set before the channel of its name is closed.
	failedAt   int64
	promotedAt int64
	healthyAt  int64 // the other servers are healthy with another master
	firstRunAt int64 // of a request on a key of the master after the promotion; set by finish of traffic
}

// A part is what callers of one kind do in a scenario. A part embeds the scenario, whose prepare and
// replaced do nothing.
type part interface {
	start()    // before the failure
	prepare()  // shortly before the failure
	replaced() // there is another master, and the old one is not repaired yet
	finish()   // the deployment is healthy: check the results
}

func (s *scenario) prepare() {}

func (s *scenario) replaced() {}

// note adds a note on the results.
func (s *scenario) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// after returns how long after the failure of the master a time was.
func (s *scenario) after(at int64) time.Duration {
	return time.Duration(at - s.failedAt).Round(time.Millisecond)
}

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
	s.failedAt = clock.Now()
	s.failure.fail(s.deployment, s.master)
	close(s.failed)
	s.failure.replace(s.deployment, s.master)
	s.healthyAt = clock.Now()
	for _, p := range parts {
		p.replaced()
	}
	s.failure.repair(s.deployment, s.master)
	suite.AwaitClosed(s.t, "a replica is promoted", s.promoted)
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
	s.t.Logf("a replica is promoted after %v, and the first request runs after %v; %d holds, %d overlaps; %s",
		s.after(s.promotedAt), s.after(s.firstRunAt), len(h.Holds()), len(overlaps), strings.Join(s.notes, "; "))
}

// isAborted reports whether the scenario is aborted, so that errors of callers are expected.
func (s *scenario) isAborted() bool { return errors.Is(context.Cause(s.ctx), errAborted) }

// awaitReplicas returns when the replicas have all writes, unless they are cut off.
func (s *scenario) awaitReplicas() {
	if s.failure.loss != all {
		s.await()
	}
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
		defer close(s.promoted)
		ctx, cancel := context.WithTimeout(s.ctx, patience)
		defer cancel()
		for ctx.Err() == nil {
			for _, replica := range replicas {
				if role, err := replica.Do(ctx, "ROLE").Slice(); err == nil && role[0] == "master" {
					s.promotedAt = clock.Now()
					return
				}
			}
			time.Sleep(2 * time.Millisecond)
		}
		s.t.Error("no replica was promoted")
	})
}
