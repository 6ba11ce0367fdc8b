-- done.lua (after state.lua) begins begin.lua. It answers the common case first: the request is done, the queue is empty, and the
-- token does not hold K. There is no queue to leave then, and the reply is the one that begin.lua would give.
local done = redis.call('HMGET', KEYS[3], 's', 'f', 'p', 'r', 't')
if done[1] == 'D' and done[2] == ARGV[8] and done[3] and redis.call('LLEN', KEYS[2]) == 0 and tokenIn(redis.call('GET', KEYS[1])) ~= ARGV[1] then
  local first = firstOf(done[5], done[4])
  if first ~= '' then return {2, done[3], first} end
  return {2, done[3]}
end
