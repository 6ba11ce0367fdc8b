// Package property tests core with random sequences of steps, on an embedded Redis and a
// fake clock, and compares the result of each step with a small model.
//
// The library rapid draws the sequences, and shortens one that fails. The flag
// -rapid.checks sets their number, and -rapid.seed repeats them.
package property
