// Package script holds the Lua scripts of the lock protocol, and their digests.
//
// Each transition of a lock is one script. A script is safe to send again: it reads all
// that it needs, and fails on a key of a wrong type, before it writes anything. Files that say
// "after" or "begins" in their first line are parts of scripts. New joins them.
//
// The scripts whose names begin with "shared" are those of shared leases: marker.lua says
// what is stored. Exclusive leases have scripts of their own. If K has the marker of shared
// leases, such a script changes nothing, and the client sends the script of shared leases,
// which handles both kinds. So a key without shared leases costs what it would cost if there
// were none. A script of exclusive leases may hand K to a shared token of the queue as to any
// other; that token turns K into a marker when it confirms the grant.
//
// Models of the waiting queue, the shared leases, the fence and the record are in the folder
// model.
package script
