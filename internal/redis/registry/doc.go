// Package registry writes and reads the records of processes: who a process is, how many leases it
// holds, how many callers wait in it, and which of both have lasted longest. The record of a process
// is one hash with the name that keyspace.Names.Process gives it. It expires after TTL, and a
// Beater writes it each Interval.
//
// A record is for people. No lock depends on it, so a beat that fails is no fault of a lock. A
// process without a beat for SilentAfter is silent, and not known to be dead: its beats may fail. One
// without a record may not be registered.
package registry
