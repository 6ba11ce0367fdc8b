package campaign

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
)

// A Run is one fault, on one deployment, with one seed.
type Run struct {
	Fault fault.Fault
	On    fault.Deployment
	Seed  uint64
	// Careless clients write without a look at their leases: they are the control.
	Careless bool
}

// Name is the name of the run, and of the directory where its failure is kept.
func (r Run) Name() string { return fmt.Sprintf("%s-%s-%d", r.Fault.Name, r.On.String(), r.Seed) }

// Command is the command that plays the run again, and keeps its failures in out.
func (r Run) Command(out string) string {
	return commandLine("-run", "^"+regexp.QuoteMeta(r.Fault.Name)+"$", "-on", r.On.String(), "-seed", strconv.FormatUint(r.Seed, 10), "-out", out)
}

// The sizes of the short plan. On a server alone each fault is played at least
// once.
const (
	shortOnServer    = 40
	shortOnSentinels = 6
	shortOnCluster   = 6
	shortOnQuorum    = 6
	shortOnReplicas  = 2 // of each kind
)

// named returns the faults whose names match.
func named(faults []fault.Fault, names *regexp.Regexp) []fault.Fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f fault.Fault) bool { return !names.MatchString(f.Name) })
}

// plan returns the runs that the settings say: for the long plan, those of its first
// round.
func (s *Settings) plan(faults []fault.Fault) []Run {
	faults = named(faults, s.Names)
	switch s.Mode {
	case Short:
		return shortPlan(faults, s.On, s.Seed)
	case Long:
		return allRuns(faults, s.On, s.Seed)
	default:
		return allRuns(faults, s.On, s.seeds()...)
	}
}

// allRuns plays each fault once with each seed on each deployment that it can happen to.
func allRuns(faults []fault.Fault, on []fault.Deployment, seeds ...uint64) []Run {
	var runs []Run
	for _, kind := range on {
		can := faultsOn(faults, kind)
		for _, seed := range seeds {
			runs = append(runs, repeatFaults(can, kind, seed, len(can))...)
		}
	}
	return runs
}

// shortPlan is the plan for each change.
func shortPlan(faults []fault.Fault, on []fault.Deployment, seed uint64) []Run {
	var runs []Run
	for _, kind := range on {
		can := faultsOn(faults, kind)
		switch kind {
		case fault.OnServer:
			runs = append(runs, repeatFaults(can, kind, seed, max(shortOnServer, len(can)))...)
		case fault.OnSentinels:
			runs = append(runs, repeatFaults(rarestFirst(can, seed), kind, seed, shortOnSentinels)...)
		case fault.OnCluster:
			runs = append(runs, repeatFaults(rarestFirst(can, seed), kind, seed, shortOnCluster)...)
		case fault.OnQuorum:
			runs = append(runs, repeatFaults(rarestFirst(can, seed), kind, seed, shortOnQuorum)...)
		case fault.OnSentinelsReplicas, fault.OnClusterReplicas:
			runs = append(runs, repeatFaults(rarestFirst(can, seed), kind, seed, shortOnReplicas)...)
		}
	}
	return runs
}

// repeatFaults plays the faults one after the other, with the next seed in each round,
// until there are so many runs.
func repeatFaults(faults []fault.Fault, on fault.Deployment, seed uint64, count int) []Run {
	var runs []Run
	for i := 0; i < count && len(faults) > 0; i++ {
		n := len(faults)
		runs = append(runs, Run{Fault: faults[i%n], On: on, Seed: seed + uint64(i/n)})
	}
	return runs
}

// faultsOn returns the faults that can happen to a deployment.
func faultsOn(faults []fault.Fault, kind fault.Deployment) []fault.Fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f fault.Fault) bool { return !slices.Contains(f.On, kind) })
}

// rarestFirst puts those first that can happen to few deployments. Where there is not
// room for all, the seed says which of the others have their turn.
func rarestFirst(faults []fault.Fault, seed uint64) []fault.Fault {
	if len(faults) == 0 {
		return nil
	}
	first := int(seed % uint64(len(faults))) //nolint:gosec // it is less than a length
	turned := slices.Concat(faults[first:], faults[:first])
	slices.SortStableFunc(turned, func(a, b fault.Fault) int { return len(a.On) - len(b.On) })
	return turned
}
