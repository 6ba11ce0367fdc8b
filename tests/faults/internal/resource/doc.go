// Package resource is what the lock guards in a run: registers that are read and
// written again under a lease, and a ledger that is charged once for each
// payment. It lives in the process of the campaign, and client processes reach
// it on a socket of the host, so that nothing of it fails when Redis does.
//
// Each key has two registers. The fenced one refuses whoever comes with a fence
// below the highest that it has seen, in a read as well as in a write: else a
// late write could come between a read and the write that builds on it. The
// other one looks at nothing, and shows what a lock alone is worth.
//
// A register holds its version: how many writes it has taken. A write says on
// which version it builds, so two writes on one version are a lost update.
package resource
