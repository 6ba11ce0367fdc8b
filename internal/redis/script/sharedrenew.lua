-- sharedrenew.lua (after phase.lua): extend a shared lease. It never creates a lease and never shortens one. Each lease of a
-- process has a command of its own, as exclusive leases have: the pipeline sends the commands that are due together as one batch.
-- KEYS: K, {K}:s, {K}:q, {K}:f; K and {K}:s alone while their slot migrates
-- ARGV: token, ttl, 3 how many fencing numbers the caller wants
-- Returns the reply of renew.lua. The number is that of the phase.
local wanted = tonumber(ARGV[3])
local waiting = KEYS[3] and redis.call('LLEN', KEYS[3]) or -1
local last = lastFence(KEYS[4], wanted)
if not prolong(token, ttl) then return {0} end
local first, numbers = reserveForPhase(KEYS[4], last, wanted)
settle()
return {1, waiting, first, numbers}
