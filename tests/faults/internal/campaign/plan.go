package campaign

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
)

// A Run is one fault on one deployment with one seed.
type Run struct {
	Fault fault.Fault
	On    fault.Deployment
	Seed  uint64
	// Careless makes the clients write without checking their leases: it is the control.
	Careless bool
}

// Name returns the name of the run, and of the directory for its failure.
func (r Run) Name() string { return fmt.Sprintf("%s-%s-%d", r.Fault.Name, r.On.String(), r.Seed) }

// Command returns the command that executes the run again, and keeps its failures in out.
func (r Run) Command(out string) string {
	return commandLine("-run", "^"+regexp.QuoteMeta(r.Fault.Name)+"$", "-on", r.On.String(), "-seed", strconv.FormatUint(r.Seed, 10), "-out", out)
}

// The sizes of the short plan. On a single server each fault runs at least once.
const (
	shortOnServer    = 40
	shortOnSentinels = 6
	shortOnCluster   = 6
	shortOnQuorum    = 6
	shortOnReplicas  = 2 // of each kind
)

// named returns the faults with matching names.
func named(faults []fault.Fault, names *regexp.Regexp) []fault.Fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f fault.Fault) bool { return !names.MatchString(f.Name) })
}

// plan returns the runs of the settings: those of the first round, for the long plan.
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

// allRuns returns one run for each fault, each deployment that it can happen to, and each
// seed.
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

// shortPlan returns the runs of the plan for each change.
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

// repeatFaults returns that many runs of the faults, in rounds. Each round has the next
// seed.
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

// rarestFirst sorts the faults that can happen to the fewest deployments first. If there
// are more faults than runs, the seed chooses among the others.
func rarestFirst(faults []fault.Fault, seed uint64) []fault.Fault {
	if len(faults) == 0 {
		return nil
	}
	first := int(seed % uint64(len(faults))) //nolint:gosec // it is less than a length
	turned := slices.Concat(faults[first:], faults[:first])
	slices.SortStableFunc(turned, func(a, b fault.Fault) int { return len(a.On) - len(b.On) })
	return turned
}

// defaultOut is the default directory for failures.
const defaultOut = "out"

// seeds returns the seeds of the runs by name, in order.
func (s *Settings) seeds() []uint64 {
	seeds := slices.Repeat([]uint64{s.Seed}, s.Count)
	for i := range seeds {
		if !s.Seeded {
			seeds[i] += uint64(i)
		}
	}
	return seeds
}

// announce describes the runs that follow, and how to choose the same ones again.
func (s *Settings) announce(runs int) string {
	many := "1 run"
	if runs > 1 {
		many = fmt.Sprintf("%d runs", runs)
	}
	switch {
	case s.Mode == Short:
		return fmt.Sprintf("seed %d: the short plan, %s", s.Seed, many)
	case s.Mode == Long:
		return fmt.Sprintf("seed %d: the long plan, rounds of %s for %v, those after the first with seeds of their own", s.Seed, many, s.For)
	case s.Count > 1 && s.Seeded:
		return fmt.Sprintf("seed %d: %s by name, all with this seed", s.Seed, many)
	case s.Count > 1:
		return fmt.Sprintf("seed %d and those after it: %s by name", s.Seed, many)
	default:
		return fmt.Sprintf("seed %d: %s by name", s.Seed, many)
	}
}

// command returns the command that starts the same plan again.
func (s *Settings) command() string {
	plan := "-short"
	if s.Mode == Long {
		plan = "-long"
	}
	return commandLine(plan, "-seed", strconv.FormatUint(s.Seed, 10), "-out", s.Out)
}

// commandLine returns the command line of the program with arguments, for a shell. It omits
// an -out at the end that is the default.
func commandLine(args ...string) string {
	if n := len(args); n > 1 && args[n-2] == "-out" && args[n-1] == defaultOut {
		args = args[:n-2]
	}
	line := []string{"go run ."}
	for _, arg := range args {
		line = append(line, quote(arg))
	}
	return strings.Join(line, " ")
}

// quote returns the argument for a shell. It adds quotes only if a character has a meaning
// in a shell.
func quote(word string) string {
	meant := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./,:@%+=", r)
	}
	if word != "" && !strings.ContainsFunc(word, meant) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
