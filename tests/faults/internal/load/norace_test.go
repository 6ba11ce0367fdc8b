//go:build !race

package load

// raced is whether the race detector is on.
const raced = false
