// Package validate checks histories.
//
// It checks the guarantees of the lock: no two clients hold a lock at a time, fencing
// numbers rise, a fenced register loses no update, each waiter is served, and each request
// has at most one answer. It uses only what clients called and what was returned, with the
// times, and the accesses to the resource. It trusts no statement of the lock about itself.
//
// Package tests/internal/history of the main module checks mutual exclusion and limits, here as
// in the other tests. Its check of fences takes the order of the grants from callers of one
// machine. Here servers lose data and clients are late, so a fence is compared with those of
// leases whose grant had returned before.
package validate
