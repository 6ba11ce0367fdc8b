-- free.lua begins release.lua: the common case first, in which nobody waits and nobody rejoins.
if ARGV[6] == '' and redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('LLEN', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[1])
  return 1
end
