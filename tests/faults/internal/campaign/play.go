package campaign

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/tests/faults/internal/check"
	"github.com/reqlock/reqlock/tests/faults/internal/clock"
	"github.com/reqlock/reqlock/tests/faults/internal/crew"
	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/network"
	"github.com/reqlock/reqlock/tests/faults/internal/stage"
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
	// playTime is how long the clients work at least until all is well, and
	// calmTime how long after that. finishTime is in what time they have to come
	// to their end then.
	playTime   = 3 * time.Second
	calmTime   = time.Second
	finishTime = 15 * time.Second
	// crowd is how many clients are in a process that is the only one.
	crowd = 24
	// atWork is after how many grants the clients are at work.
	atWork = 20
)

// play plays a run, and has its history judged.
func play(ctx context.Context, r Run) *Report {
	report := &Report{Run: r}
	begun := time.Now()
	result := stage.Run(ctx, r.Name(), report.perform)
	report.Failed, report.Skipped, report.Log = result.Failed, result.Skipped, result.Log
	if report.History != nil {
		report.Findings = check.All(report.History)
	}
	report.Took = time.Since(begun)
	return report
}

// perform is what happens on the stage.
func (r *Report) perform(tb testing.TB) {
	r.keepServerLogs(tb)
	g := start(tb, r.Run.On, r.Run.Fault.Args)
	stop := watchStalls()
	defer stop()

	var troubles troubles
	s := g.scene(tb)
	s.Network = network.Start(tb, addresses(g.data())...)
	s.Random = choices(r.Run.Seed)
	s.TTL, s.Trouble, s.Replicas = ttl, troubles.begin, r.Run.replicas()
	h := &history.History{
		Name: r.Run.Fault.Name, Deployment: r.Run.On.String(), Seed: r.Run.Seed, Careless: r.Run.Careless,
		Unfenced: r.Run.On == fault.OnQuorum,
		TTL:      ttl.Nanoseconds(), Claim: claim.Nanoseconds(), CommandTimeout: commandTimeout.Nanoseconds(),
	}
	c := crew.Start(tb, r.Run.crew(g.options(), func(process int) map[string]string { return s.Network.Path(process).Routes }))
	s.Crew, s.Keys = c, c.Keys()
	s.CounterAhead = func(key string, by time.Duration) {
		h.AheadCounters = append(h.AheadCounters, history.AheadCounter{Key: key, At: clock.Now(), By: by.Nanoseconds()})
	}

	apart(func() {
		c.AwaitGrants(atWork)
		h.Begun = clock.Now()
		act(s, r.Run.Fault, &troubles)
	})
	if tb.Context().Err() != nil {
		return // interrupted
	}
	h.Calm = troubles.over(h.Begun)
	apart(func() { c.Finish(finishTime) })
	h.Ended = clock.Now()
	c.Fill(h)
	keys := map[string]string{}
	for _, op := range h.Ops {
		keys[c.NameOf(op)] = op.Key
	}
	h.Troubles = append(troubles.all(keys), stop()...)
	r.History = h
}

// crew returns what the clients of a run are and do. A quorum has neither attempts nor
// fences.
func (r Run) crew(servers redistest.Options, routes func(process int) map[string]string) crew.Settings {
	s := crew.Settings{
		Redis: servers, Routes: routes, Seed: r.Seed,
		TTL: ttl, CommandTimeout: commandTimeout, Careless: r.Careless,
		StallTime: stallTime,
		Replicas:  r.replicas(), ReplicaTimeout: commandTimeout / 4,
	}
	if r.On == fault.OnQuorum {
		s.Quarantine, s.Attempts = fault.Quarantine(ttl), -1
	}
	if r.Fault.Crowd {
		s.Processes, s.Clients = 1, crowd
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

// choices are those of the fault. No client has the same: see client.Choices.
func choices(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // they are to be repeated
}

// act plays the fault while the clients work, and lets them work on for a while
// when all is well.
func act(s *fault.Scene, f fault.Fault, troubles *troubles) {
	begun := time.Now()
	f.Play(s)
	troubles.well()
	rest(s.Context(), max(playTime-time.Since(begun), calmTime))
	s.Crew.AwaitGrants(1)
}

// apart runs f, and returns when it has ended, also where it ended its goroutine
// since the run has failed: what the clients did is judged all the same.
func apart(f func()) {
	var done sync.WaitGroup
	done.Go(f)
	done.Wait()
}

// rest lets the clients work for a time.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
