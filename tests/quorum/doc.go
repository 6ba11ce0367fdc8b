// Package quorum tests the lock of a quorum of five real servers, through the public API
// and over real connections. The lock excludes others whatever happens to the servers,
// a majority of the servers is enough for it, and without a majority callers get a clear
// refusal.
//
// # The rows
//
// A node can be killed, stopped, delayed, cut off, or restarted with empty memory. Each
// of these faults hits each node, and each pair of faults hits each pair of nodes: with
// the row in which no node fails these are 276 rows. The faults of a row hit at the two
// most dangerous moments for a lock: while one process holds it and others wait, and
// when several processes have just asked for it. During the faults and after the repair
// each process must get locks, by calls and by HTTP requests. The lease that was held
// must stay valid, and a node that restarted must vote for a lease again.
//
// In other rows three or more nodes fail. Then no process gets a lock. Each call returns
// that Redis is unavailable, and never that the lock is busy. A holder is informed that
// its lease is lost. After the repair the processes recover without help.
//
// The fast tier runs a few rows in which no node restarts, chosen at random in each run. The
// full tier runs each fault, each pair of faults and each pair of nodes. REQLOCK_SOAK=10m
// runs all rows, again and again for that long, and at least once.
//
// # The checks
//
// Package history checks that no two holds of a key overlap. One test, in which servers
// restart empty and vote at once, shows that the check finds two holders.
//
// The package has only tests.
package quorum
