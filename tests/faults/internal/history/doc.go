// Package history is the record of a run: what each client called and what was returned,
// how the resource under the lock was accessed, and what was disrupted. The checks read
// nothing else, so a history that is kept as JSON can be validated again.
//
// All times are readings of CLOCK_MONOTONIC in nanoseconds, which all processes of a host
// share. A time of 0 means never.
package history
