// Package history checks what the holders of locks have seen.
//
// A [Hold] is one turn of one caller on one key. The caller may trust the lock from its
// grant to the earliest of its release, the end of the lease's context and the end of
// the lease's validity. Tests record holds, mostly with a [Recorder], and check them
// afterwards: no two holds of a key overlap, fences rise, and each caller that waits is
// served. Each check returns one line for each violation.
package history
