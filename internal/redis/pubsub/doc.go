// Package pubsub receives the hints of one process.
//
// A hint, "<token> <lock name>", says that the token was seen in the key, or that another
// request waits for its holder. It says "check again" and grants nothing, so a lost or a
// forged hint does no harm. The scripts give a key to the first waiter that listens, by
// the number of subscribers that PUBLISH reached. After each gap in a subscription there is
// a hint for each key that it serves.
//
// On a server alone, and behind Sentinel, a process has one channel and one connection.
//
// In a cluster PUBLISH counts only the subscribers of its own node. So a process has one
// sharded channel for each key that it waits for, in the slot of that key: SPUBLISH counts
// the subscribers there. All channels at one master share a connection. A channel follows
// its slot: its master is resolved again when the connection ends, when the server ends or
// refuses the subscription, and when the client's table of slots names another master. A
// replica accepts a subscription too, and does not count, so the master of a new channel is
// checked for some seconds. While a slot is being moved, its waiters depend on their timers.
//
// A cluster older than Redis 7 has no sharded channels. There the process uses its one
// channel, and the scripts hand a key to the first waiter whether it listens or not.
package pubsub
