-- done.lua begins begin.lua: the common case first, in which the request is done, nobody waits, and K is not ours. Then
-- there is nothing to leave, and the answer is that of begin.lua.
local done = redis.call('HMGET', KEYS[3], 's', 'f', 'p')
if done[1] == 'D' and done[2] == ARGV[8] and done[3] and redis.call('LLEN', KEYS[2]) == 0 and redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {2, done[3]}
end
