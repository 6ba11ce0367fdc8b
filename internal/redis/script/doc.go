// Package script holds the Lua scripts of the lock protocol, and their digests.
//
// Each transition of a lock is one script. A script is safe to send again. Before its first
// write it has used each key that it needs, so it changes nothing if one has a wrong type. The
// first write needs no memory where a lease ends, so that leases end on a full server, too.
//
// New joins scripts from parts, each a file. A script has the name of its last part. The first
// line of a file names in "(after ...)" the parts that it needs ahead of it, or says which
// scripts it begins. token.lua begins each script that compares the value of K with a token.
// free.lua, turn.lua, done.lua, sharedtake.lua, sharedbeside.lua, sharedfree.lua and sharedend.lua answer the common cases of a script
// first.
//
// The scripts whose names begin with "shared" are those of shared leases: marker.lua says
// what is stored. Exclusive leases have scripts of their own. If K has the marker of shared
// leases, such a script changes nothing, and the client sends the script of shared leases,
// which handles both kinds. So a key without shared leases costs what it would cost if there
// were none. A script of exclusive leases may hand K to a shared token of the queue as to any
// other; that token turns K into a marker when it confirms the grant.
//
// rights.lua is no transition: only the key of a Check has it.
//
// Models of the waiting queue, the shared leases, the fence, the record, revoked leases and tickets are in
// the folder model.
package script
