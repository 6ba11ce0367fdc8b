// Package readiness checks that a Redis supports all that a Store needs. It runs the
// transitions of a lock and of an idempotent request on a unique key, and then deletes the
// key. Once that has found no problem, short runs follow, with few commands. The package describes
// a problem in one sentence, with the remedy.
package readiness
