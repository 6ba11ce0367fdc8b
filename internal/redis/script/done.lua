-- done.lua (after state.lua) begins begin.lua. It answers the common case first: the request is done, the queue is empty, and the
-- token does not hold K. There is no queue to leave then, and the reply is the one that begin.lua would give. It ends before r if
-- r is nil.
local s, t, f, n, reported, x, r, p = read(KEYS[3], ARGV[1])
if s == 'D' and f == ARGV[8] and redis.call('LLEN', KEYS[2]) == 0 and tokenIn(redis.call('GET', KEYS[1])) ~= ARGV[1] then
  return {2, p, r}
end
