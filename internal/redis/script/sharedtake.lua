-- sharedtake.lua begins sharedask.lua. It handles the common case first: nothing is stored for K, and a token that wants a shared
-- lease wants no fencing number. The token begins a phase. The short form of the command has only the token and the ttl as
-- arguments: see sharedbeside.lua. In any other case this part changes nothing.
local stored = redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3])  -- how many of the keys
if stored == 0 and (ARGV[7] or '0') == '0' and string.sub(ARGV[1], 34, 34) == '0' then  -- limitOf is not nil: see marker.lua
  local time = redis.call('TIME')
  -- As an integer: Redis takes longer to print a double. The format cuts the fraction off.
  redis.call('ZADD', KEYS[3], string.format('%d', time[1] * 1000 + time[2] / 1000 + ARGV[2]), ARGV[1])
  redis.call('PEXPIRE', KEYS[3], ARGV[2])
  redis.call('SET', KEYS[1], 'shared 0 - 0', 'PX', ARGV[2])
  return 1
end
