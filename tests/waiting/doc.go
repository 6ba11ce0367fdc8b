// Package waiting tests the queue of waiters on a real redis-server, with real processes,
// through the public API of package core alone.
//
// # The workers
//
// The test binary starts itself again as worker processes. The workers and the test map
// one file, the table. Each turn of each goroutine has a row in the table, which survives
// the death of its process. One word of the table says which turn is in the critical
// section. The test kills and stops workers, cuts their subscriptions, deletes keys, and
// reads the table meanwhile.
//
// # The checks
//
// The table is a history of holds, with times of CLOCK_MONOTONIC, which all processes of
// a host share. Package history checks that no two holds overlap, except for shared holds
// within their limits, that fences rise, and that each caller is served. The checks of this
// package find a process that takes more than its turn while another process waits, callers
// of one process that are not served in their order, and waits that a stream of leases of
// another kind makes too long. They have tests of their own, with wrong histories.
//
// # The tiers
//
// The fast tier has fewer turns and shorter runs than the full tier. Scenarios on Sentinel
// and on Cluster, and a stream of permits, are in the full tier alone. REQLOCK_SOAK=2m makes
// the soak last that long.
// Tests of the fairness of processes do not run in parallel. The soak and other tests that
// measure memory run in processes of their own.
//
// The package has only tests. Tests with workers run only on Linux.
package waiting
