// Package waiting proves the waiting line on a real redis-server, with real
// processes, through the public API of package core alone.
//
// # The crew
//
// The test binary starts itself again as worker processes. All of them, and the
// test, map one file: the table. In it each turn of each goroutine has a row,
// which survives the death of its process, and one word says who is inside. The
// test kills and stops workers, cuts their subscriptions, deletes keys, and
// reads the table as it fills.
//
// # The checks
//
// What the table says is a history of holds, with times of CLOCK_MONOTONIC,
// which all processes of a host share. A hold is believed in from its grant to
// the earliest of its release, the end of its context and the end of its
// validity. The checks ask of a history that no two holds overlap, that fences
// rise, that everybody was served, and that nobody takes more than its turn
// while another process waits. They have tests of their own, with histories
// that are wrong on purpose.
//
// There is nothing in this package but its tests. Those with processes run on
// Linux only.
package waiting
