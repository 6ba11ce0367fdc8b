-- done.lua begins begin.lua. It answers the common case first: the request is done, the queue is empty, and the token does
-- not hold K. There is no queue to leave then, and the reply is the one that begin.lua would give.
local done = redis.call('HMGET', KEYS[3], 's', 'f', 'p')
if done[1] == 'D' and done[2] == ARGV[8] and done[3] and redis.call('LLEN', KEYS[2]) == 0 and tokenIn(redis.call('GET', KEYS[1])) ~= ARGV[1] then
  return {2, done[3]}
end
