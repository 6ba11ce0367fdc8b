-- sharedend.lua (after sharedfree.lua, clock.lua): the second common case of sharedrelease.lua. The queue is empty, no token
-- rejoins it, and K is a marker. In any other case the short form of the command returns -1 and changes nothing, and the client
-- sends the long form.
if isAlone then
  leases = leases - redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
  if not ends or tonumber(ends) <= now then return 0 end
  if leases == 1 then
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
if not ARGV[2] then return -1 end
