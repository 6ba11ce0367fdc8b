-- renew.lua (after lease.lua, fence.lua): raise the life of a lease; never create it, never shorten it.
-- KEYS: K, {K}:q, {K}:f   ARGV: token, ttl, 3 numbers wanted
-- Returns {1, length of the line, first number or 0} when K is ours, {0} when it is not: the lease is lost.
if redis.call('GET', K) ~= token then return {0} end
local waiting, wanted = redis.call('LLEN', KEYS[2]), tonumber(ARGV[3])
local last = lastFence(KEYS[3], wanted)
raise(K, ttl)
return {1, waiting, reserve(KEYS[3], last, wanted)}
