-- ask.lua: ask again for a key that somebody holds, or confirm a grant that an earlier send won.
-- KEYS: K   ARGV: token, ttl in ms
-- Returns {1} when K is ours, with at least ttl to live; {0, value found, PTTL} when it is another's.
local value = redis.call('GET', KEYS[1])
if value and value ~= ARGV[1] then return {0, value, redis.call('PTTL', KEYS[1])} end
if not value then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return {1}
