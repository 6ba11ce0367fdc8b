// Package idempotent measures what idempotency costs a request: its first run
// and its replays beside the plain handler, with reqlock and with the middleware
// of Fiber, and the memory of Redis that each record takes.
package idempotent
