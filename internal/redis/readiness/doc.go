// Package readiness checks that a Redis does all that a Store needs of it, by using it: it
// runs the transitions of a lock and of an idempotent request on a key of its own, and
// deletes the key. What is wrong it explains in one sentence, with the remedy.
package readiness
