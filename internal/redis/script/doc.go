// Package script holds the Lua scripts of the lock protocol, and their digests.
//
// Each transition of a lock is one script. A script is safe to send again: it reads all
// that it needs, and fails on a key of a wrong type, before it writes anything. lease.lua,
// queue.lua, fence.lua, ask.lua, leave.lua, state.lua, record.lua, free.lua and done.lua are
// parts that scripts share. New joins them.
//
// Models of the waiting queue, the fence and the record are in the folder model.
package script
