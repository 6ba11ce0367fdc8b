// Package resource is what the lock protects in a run: registers that clients read and
// write under a lease, and a ledger that is charged once for each payment. It runs in the
// process of the campaign. Client processes reach it on a socket of the host, so it does
// not fail with Redis.
//
// Each key has two registers. The fenced register refuses reads and writes with a fencing
// number below the highest one that it has seen. It also refuses reads, since a late write
// could come between a read and the write that is based on that read. The unfenced register
// refuses nothing: it shows what the lock guarantees alone.
//
// A register stores its version: the number of writes that it has accepted. A write names
// the version that it is based on, so two writes based on one version are a lost update.
package resource
