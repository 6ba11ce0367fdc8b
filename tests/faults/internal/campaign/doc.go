// Package campaign plays faults against the lock, run by run, and has each history
// judged.
//
// A run is one fault on one deployment with one seed, which makes all of its
// choices. It starts servers of its own, lays a network in front of them, puts a
// crew of clients to work, plays the fault, waits for calm, and gives what the
// clients have called and heard to the checks. Whatever is found is kept in a
// directory, with what it takes to judge it again and to play it again.
//
// The plans are a short one, for each change; a long one, for a night; any faults
// by their names; and the mutants, which show that the campaign would find what it
// looks for.
package campaign
