// Package history is what a run of the campaign leaves behind: what each client
// has called and heard, what the resource under the lock has seen, and what was
// broken meanwhile. The checks read nothing else, so a history that was kept as
// JSON can be judged again later.
//
// All times are those of CLOCK_MONOTONIC in nanoseconds, which the processes of
// one host share. A time of 0 is never.
package history
