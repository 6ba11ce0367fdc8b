package campaign

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/programtb"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic/client"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
	"github.com/reqlock/reqlock/tests/faults/internal/watchdog"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// The durations and sizes of a run.
const (
	ttl            = 400 * time.Millisecond
	commandTimeout = ttl / 4
	// stallTime is how late the machine may be. A command passes four processes on its way
	// and back, and each of them may be that late.
	stallTime = commandTimeout / 5
	// claim is how long a key stays assigned to a waiter after a hand-off.
	claim = ttl
	// minWorkTime is the least time for which the clients work until the system has
	// recovered, and recoveredTime is how long they work after that. Then they must end
	// within finishTime.
	minWorkTime   = 2 * time.Second
	recoveredTime = time.Second
	finishTime    = 15 * time.Second
	// oneProcessClients is the number of clients if there is only one process.
	oneProcessClients = 24
	// warmUpGrants is the least number of grants before the fault.
	warmUpGrants = 20
)

// runFault executes a run, and validates its history.
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

// run executes the run up to its history.
func (r *Report) run(tb testing.TB) {
	r.keepServerLogs(tb)
	g := startServers(tb, r.Run.On, r.Run.Fault.Args)
	stop := watchStalls()
	defer stop()

	var declared disruptions
	s := g.system(tb)
	s.Network = redistest.NewNetwork(tb, addresses(g.data())...)
	s.Random = faultRandom(r.Run.Seed)
	s.TTL, s.Disrupt, s.Replicas = ttl, declared.begin, r.Run.replicas()
	h := &history.History{
		Name: r.Run.Fault.Name, Deployment: r.Run.On.String(), Seed: r.Run.Seed, Careless: r.Run.Careless,
		Unfenced: r.Run.On == fault.OnQuorum,
		TTL:      ttl.Nanoseconds(), Claim: claim.Nanoseconds(), CommandTimeout: commandTimeout.Nanoseconds(),
		FailFast: r.Run.Fault.FailFast.Nanoseconds(),
	}
	settings := r.Run.workloadSettings(g.options(), func(process int) map[string]string { return s.Network.Path(process).Routes() })
	c := traffic.Start(tb, settings)
	s.Workload, s.Keys = c, settings.Keys()
	s.CounterAhead = func(key string, by time.Duration) {
		h.AheadCounters = append(h.AheadCounters, history.AheadCounter{Key: key, At: clock.Now(), By: by.Nanoseconds()})
	}

	onGoroutine(func() {
		warmUp(c, h)
		injectFault(s, r.Run.Fault, &declared)
	})
	if tb.Context().Err() != nil {
		return // interrupted
	}
	h.Recovered = declared.recoveredAt(h.Begun)
	onGoroutine(func() { c.Finish(finishTime) })
	h.Ended = clock.Now()
	c.Fill(h)
	keys := map[string]string{}
	for _, op := range h.Ops {
		keys[traffic.LockName(op)] = op.Key
	}
	h.Disruptions = append(declared.all(keys), stop()...)
	r.History = h
}

// workloadSettings returns the settings of the clients. On a quorum there are no attempts, no
// fencing numbers and no shared leases.
func (r Run) workloadSettings(servers redistest.Options, routes func(process int) map[string]string) traffic.Settings {
	s := traffic.Settings{
		Processes: 4, TwoKinds: r.Fault.TwoKinds, Routes: routes,
		Options: client.Options{
			Redis: servers, Clients: cmp.Or(r.Fault.Clients, 2), Seed: r.Seed, TTL: ttl, CommandTimeout: commandTimeout, StallTime: stallTime,
			FailFast: r.Fault.FailFast, MinHold: r.Fault.MinHold, Replicas: r.replicas(), ReplicaTimeout: commandTimeout / 4,
			Attempts: 30, SharedTurns: 40, Careless: r.Careless,
		},
	}
	if r.On == fault.OnQuorum {
		s.Quarantine, s.Attempts, s.SharedTurns = fault.Quarantine(ttl), 0, 0
	}
	if r.Fault.OneProcess {
		s.Processes, s.Clients = 1, oneProcessClients
	}
	if r.Fault.Paying {
		s.Attempts = 90
	}
	if r.Fault.SharedOnly {
		s.Attempts, s.SharedTurns, s.ReadersOnly = 0, 100, r.Fault.ReadersOnly
	}
	if callers := r.Fault.FullSpeed; callers != nil {
		s.Processes, s.Clients = callers.Processes, callers.Clients
		s.FullSpeed, s.Routes = true, nil
	}
	return s
}

// replicas returns the number of replicas that must acknowledge a lease.
func (r Run) replicas() int {
	if !r.On.CountsReplicas() {
		return 0
	}
	return max(1, r.Fault.Replicas)
}

// faultRandom returns the random numbers of the fault. Those of the clients differ: see
// client.RandomOf.
func faultRandom(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // they are to be repeated
}

// warmUp returns when each client was served, and sets the beginning of the history. If a client
// is never served, the run fails here, and its history begins before, so that it is judged.
func warmUp(workload *traffic.Workload, h *history.History) {
	workload.AwaitGrants(warmUpGrants)
	h.Begun = clock.Now()
	workload.AwaitEachClient()
	h.Begun = clock.Now()
}

// injectFault injects the fault while the clients work, and lets them work for a while
// after the system has recovered.
func injectFault(s *fault.System, f fault.Fault, declared *disruptions) {
	begun := time.Now()
	f.Inject(s)
	declared.recovered()
	sleep(s.Context(), max(minWorkTime-time.Since(begun), recoveredTime))
	s.Workload.AwaitGrants(1)
}

// onGoroutine runs f on another goroutine, and returns when that goroutine has ended. A
// failure in f ends only its goroutine: the history is validated all the same.
func onGoroutine(f func()) {
	var done sync.WaitGroup
	done.Go(f)
	done.Wait()
}

// sleep waits for a time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// watchStalls watches this process, which also runs the network, until stop is called. Stop
// returns the stalls.
func watchStalls() (stop func() []history.Disruption) {
	var seen []history.Disruption
	end := watchdog.Watch(stallTime, func(from, to int64) {
		seen = append(seen, history.Disruption{Name: validate.Stalled + " machine", From: from, To: to})
	})
	return func() []history.Disruption {
		end()
		return seen
	}
}
