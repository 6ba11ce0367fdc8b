package console

import "github.com/reqlock/reqlock/inspect"

// heardOf says when a process was last heard of, and whether that is so recent that it is probably alive.
// found is whether the process has a record.
func heardOf(p inspect.Process, found bool) (text string, isAlive bool) {
	switch {
	case !found:
		return "is silent: it has no record", false
	case p.Age < 0:
		return "has a record of an unknown age", false
	case p.Silent():
		return "has been silent for " + lasted(p.Age), false
	default:
		return "wrote its record " + lasted(p.Age) + " ago", true
	}
}

// riskOf says what happens if the lease is freed at once, as far as that is known.
func riskOf(h inspect.Holder, p inspect.Process, found bool) string {
	if h.Kind == inspect.HolderRevoked {
		return "The old holder may still run. Wait " + lasted(h.LeaseLeft) + " instead."
	}
	heard, isAlive := heardOf(p, found)
	if isAlive {
		return "Its process " + heard + ". Unless it has died since, two holders will run at once."
	}
	return "Its process " + heard + ". If it still runs, two holders will run at once."
}
