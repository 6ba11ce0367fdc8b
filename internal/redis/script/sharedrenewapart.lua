-- sharedrenewapart.lua: extend a shared lease while K and {K}:s are on different nodes, because the move of their slot has stopped
-- between them. The client sends the script for K, and then for {K}:s. No script removes the marker while a lease is out. So
-- the lease that the second run finds has the marker that the first run has extended. The marker gets twice the TTL, because it
-- has to outlive the lease, which the second run extends later. A marker without leases does no harm.
-- KEYS: K or {K}:s   ARGV: token, ttl, 3 "K" or "S": which key it is
-- Returns {0} if the lease is lost, -1 for K, and for {K}:s the reply of sharedrenew.lua.
local key, token, ttl = KEYS[1], ARGV[1], tonumber(ARGV[2])
if ARGV[3] == 'K' then
  if not string.find(redis.call('GET', key) or '', '^shared %d+ %S+ %d+$') then return {0} end
  redis.call('PEXPIRE', key, math.max(redis.call('PTTL', key), 2 * ttl))
  return -1
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = tonumber(redis.call('ZSCORE', key, token) or 0)
if ends <= now then return {0} end
redis.call('ZREMRANGEBYSCORE', key, '-inf', now)  -- a first write that needs no memory, as in shared.lua
redis.call('ZADD', key, math.max(ends, now + ttl), token)
redis.call('PEXPIREAT', key, redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
return {1, -1, 0, 0}
