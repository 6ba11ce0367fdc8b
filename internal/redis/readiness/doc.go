// Package readiness checks that a Redis supports all that a Store needs. It runs the
// transitions of a lock and of an idempotent request on a unique key, and then deletes the
// key. It describes a problem in one sentence, with the remedy.
package readiness
