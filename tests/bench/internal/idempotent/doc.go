// Package idempotent measures the cost of idempotency for a request: first runs and
// replays, compared with the plain handler, with reqlock and with the middleware of Fiber,
// and the memory of Redis for each record.
package idempotent
