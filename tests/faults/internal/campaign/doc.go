// Package campaign injects faults into deployments of the lock, and validates the
// histories.
//
// A run is one fault on one deployment with one seed, which determines all random choices.
// A run starts its own servers, a network in front of them and client processes, injects
// the fault, waits until the system has recovered, and validates what the clients called
// and what was returned to them. If a run finds a violation, it is kept in a directory,
// with the commands to validate it and to run it again.
//
// There are three plans: a short one for each change, a long one for a night, and runs by name.
package campaign
