//go:build race

package suite

// Race reports whether the race detector is on, which makes the code about ten times
// slower.
const Race = true
