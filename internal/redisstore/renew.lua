-- renew.lua (after lease.lua, fence.lua): raise the life of a lease; never create it, never shorten it.
-- KEYS: K, {K}:q, {K}:f; for an attempt K, {K}:q, {K}:r, {K}:f   ARGV: token, ttl, 3 numbers wanted, 4 for an attempt:
--   ms to keep its record, from now on
-- Returns {1, length of the line, first number or 0} when K is ours, {0} when it is not: the lease is lost.
if redis.call('GET', K) ~= token then return {0} end
local waiting, wanted, keep = redis.call('LLEN', KEYS[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local fence = KEYS[keep and 4 or 3]
local last = lastFence(fence, wanted)
local ours = keep and redis.call('HGET', KEYS[3], 't') == token
raise(K, ttl)
if ours then raise(KEYS[3], keep) end
return {1, waiting, reserve(fence, last, wanted)}
