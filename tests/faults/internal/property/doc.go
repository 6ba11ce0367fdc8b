// Package property plays random games with core, on an embedded Redis and a clock
// that only moves when it is told to, and compares each step with a model that
// is small enough to be right.
//
// The games are drawn by rapid, which makes one that fails as short as it can.
// -rapid.checks says how many are played, and -rapid.seed repeats them.
package property
