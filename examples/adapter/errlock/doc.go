// Package errlock runs the requests of errmux handlers under a lock in Redis, and once for their key.
// It is the example of [Writing an adapter].
//
// [Writing an adapter]: https://github.com/reqlock/reqlock/blob/main/docs/writing-an-adapter.md
package errlock
