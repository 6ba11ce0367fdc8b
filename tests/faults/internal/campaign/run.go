package campaign

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/clock"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/network"
	"github.com/reqlock/reqlock/tests/faults/internal/programtb"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// The measures of a run.
const (
	ttl            = 400 * time.Millisecond
	commandTimeout = ttl / 4
	// stallTime is how late the machine may be. A command passes four processes on
	// its way and back, and each may be as late.
	stallTime = commandTimeout / 5
	// claim is how long a key stays with a waiter to whom it was handed.
	claim = ttl
	// minWorkTime is how long the clients work at least until all is well, and
	// calmTime how long after that. finishTime is in what time they have to come
	// to their end then.
	minWorkTime   = 3 * time.Second
	recoveredTime = time.Second
	finishTime    = 15 * time.Second
	// oneProcessClients is how many clients are in a process that is the only one.
	oneProcessClients = 24
	// warmUpGrants is after how many grants the clients are at work.
	warmUpGrants = 20
)

// runFault plays a run, and has its history judged.
func runFault(ctx context.Context, r Run) *Report {
	report := &Report{Run: r}
	begun := time.Now()
	result := programtb.Run(ctx, r.Name(), report.run)
	report.Failed, report.Skipped, report.Log = result.Failed, result.Skipped, result.Log
	if report.History != nil {
		report.Violations = validate.All(report.History)
	}
	report.Took = time.Since(begun)
	return report
}

// run is what happens on the stage.
func (r *Report) run(tb testing.TB) {
	r.keepServerLogs(tb)
	g := startServers(tb, r.Run.On, r.Run.Fault.Args)
	stop := watchStalls()
	defer stop()

	var troubles disruptions
	s := g.system(tb)
	s.Network = network.Start(tb, addresses(g.data())...)
	s.Random = faultRandom(r.Run.Seed)
	s.TTL, s.Disrupt, s.Replicas = ttl, troubles.begin, r.Run.replicas()
	h := &history.History{
		Name: r.Run.Fault.Name, Deployment: r.Run.On.String(), Seed: r.Run.Seed, Careless: r.Run.Careless,
		Unfenced: r.Run.On == fault.OnQuorum,
		TTL:      ttl.Nanoseconds(), Claim: claim.Nanoseconds(), CommandTimeout: commandTimeout.Nanoseconds(),
	}
	c := traffic.Start(tb, r.Run.workloadSettings(g.options(), func(process int) map[string]string { return s.Network.Path(process).Routes }))
	s.Workload, s.Keys = c, c.Keys()
	s.CounterAhead = func(key string, by time.Duration) {
		h.AheadCounters = append(h.AheadCounters, history.AheadCounter{Key: key, At: clock.Now(), By: by.Nanoseconds()})
	}

	onGoroutine(func() {
		c.AwaitGrants(warmUpGrants)
		h.Begun = clock.Now()
		injectFault(s, r.Run.Fault, &troubles)
	})
	if tb.Context().Err() != nil {
		return // interrupted
	}
	h.Recovered = troubles.recoveredAt(h.Begun)
	onGoroutine(func() { c.Finish(finishTime) })
	h.Ended = clock.Now()
	c.Fill(h)
	keys := map[string]string{}
	for _, op := range h.Ops {
		keys[c.LockName(op)] = op.Key
	}
	h.Disruptions = append(troubles.all(keys), stop()...)
	r.History = h
}

// workloadSettings returns what the clients of a run are and do. A quorum has neither attempts nor
// fences.
func (r Run) workloadSettings(servers redistest.Options, routes func(process int) map[string]string) traffic.Settings {
	s := traffic.Settings{
		Redis: servers, Routes: routes, Seed: r.Seed,
		TTL: ttl, CommandTimeout: commandTimeout, Careless: r.Careless,
		StallTime: stallTime,
		Replicas:  r.replicas(), ReplicaTimeout: commandTimeout / 4,
	}
	if r.On == fault.OnQuorum {
		s.Quarantine, s.Attempts = fault.Quarantine(ttl), -1
	}
	if r.Fault.OneProcess {
		s.Processes, s.Clients = 1, oneProcessClients
	}
	if callers := r.Fault.FullSpeed; callers != nil {
		s.Processes, s.Clients = callers.Processes, callers.Clients
		s.FullSpeed, s.Routes = true, nil
	}
	return s
}

// replicas is how many replicas have to acknowledge a lease; 0 if nobody asks them.
func (r Run) replicas() int {
	if !r.On.CountsReplicas() {
		return 0
	}
	return max(1, r.Fault.Replicas)
}

// faultRandom are those of the fault. No client has the same: see client.Choices.
func faultRandom(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // they are to be repeated
}

// injectFault plays the fault while the clients work, and lets them work on for a while
// when all is well.
func injectFault(s *fault.System, f fault.Fault, troubles *disruptions) {
	begun := time.Now()
	f.Inject(s)
	troubles.recovered()
	sleep(s.Context(), max(minWorkTime-time.Since(begun), recoveredTime))
	s.Workload.AwaitGrants(1)
}

// onGoroutine runs f, and returns when it has ended, also where it ended its goroutine
// since the run has failed: what the clients did is judged all the same.
func onGoroutine(f func()) {
	var done sync.WaitGroup
	done.Go(f)
	done.Wait()
}

// sleep lets the clients work for a time.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
