// Package validate checks histories.
//
// It checks the guarantees of the lock: no two clients hold a lock at a time, fencing
// numbers rise, a fenced register loses no update, each waiter is served, and each request
// has at most one answer. It uses only what clients called and what was returned, with the
// times, and the accesses to the resource. It trusts no statement of the lock about itself.
package validate
