-- sharedfree.lua (after marker.lua) begins sharedrelease.lua. It handles the common case first: the queue is empty, no token
-- rejoins it, and K is a marker.
if number and ARGV[6] == '' and redis.call('LLEN', KEYS[2]) == 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
  local ends = redis.call('ZSCORE', KEYS[3], ARGV[1])
  if not ends then return 0 end
  if redis.call('ZCARD', KEYS[3]) == 1 then
    redis.call('DEL', KEYS[1], KEYS[3])
    return 1
  end
  redis.call('ZREM', KEYS[3], ARGV[1])
  local last = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
  if tonumber(ends) > tonumber(last) then
    redis.call('PEXPIREAT', KEYS[1], last)
    redis.call('PEXPIREAT', KEYS[3], last)
  end
  return 1
end
