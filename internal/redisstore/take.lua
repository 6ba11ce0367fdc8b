-- take.lua: what SET K token NX GET PX ttl does, for servers older than Redis 7.
-- KEYS: K   ARGV: token, ttl in ms
-- Returns false when K was free and is ours now, else the value found; our own token means that an earlier send won.
local value = redis.call('GET', KEYS[1])
if not value then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return value
