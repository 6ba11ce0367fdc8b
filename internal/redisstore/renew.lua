-- renew.lua: raise the life of a lease; never create it, never shorten it.
-- KEYS: K   ARGV: token, ttl in ms
-- Returns 1 when K is ours, 0 when it is not: the lease is lost.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
