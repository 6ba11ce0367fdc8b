// Package pubsub receives the hints of one process.
//
// A hint is a message "<token> <lock name>". It reports that the lock's key contained the
// token, or that another request waits for the holder with that token. The receiver of a
// hint checks the key. A hint grants nothing, so a lost or a forged hint does no harm. A
// script hands a key to the first waiter with a subscription: PUBLISH returns the number
// of subscribers. After each gap in a subscription, the package calls the hint function
// for each key of the subscription.
//
// # One server, or Sentinel
//
// A process has one channel and one connection.
//
// # Cluster
//
// In a cluster PUBLISH counts only the subscribers of its own node. So a process has one
// sharded channel for each key that it waits for, in the slot of the key, and SPUBLISH
// counts its subscribers. All channels at one master share a connection.
//
// A channel follows its slot. The package resolves the master of a channel again in three
// cases: the connection ends, the server ends or refuses the subscription, or the client's
// slot table names another master. A replica accepts a subscription, too, but SPUBLISH at
// the master does not count it. So the package checks the master of a new channel for some
// seconds. While a slot is being moved, its waiters depend on their timers.
//
// A process whose user may not use sharded channels subscribes to its one channel at the
// masters of its keys.
//
// # Processes of both kinds
//
// A cluster of one node takes plain clients as well as clients of a cluster. If nobody
// receives a hint that a script sends to one kind of channel, the script sends it to the
// other kind, too: see queue.lua.
package pubsub
