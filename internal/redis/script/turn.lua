-- turn.lua begins enqueue.lua. It handles the two common cases of a token that is apart first, which each turn of a process with one
-- caller has, without the functions of the other parts: to make these costs more than the commands. No fencing number is wanted.
--   K has the token: the grant is confirmed
--   the token is fresh and not the first in the queue, so that the holder knows that tokens wait
local value = redis.call('GET', KEYS[1])
if value and ARGV[6] > '1' and ARGV[7] == '0' then
  if tokenIn(value) == ARGV[1] then
    local waiting = redis.call('LLEN', KEYS[2])
    if redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT') == 1 then return {1, waiting, 0, 0} end
  elseif ARGV[6] == '3' and not string.find(value, '^shared %d+ %S+ %d+$') then
    local waiting = redis.call('RPUSH', KEYS[2], ARGV[1])
    if waiting > 1 then
      redis.call('PEXPIRE', KEYS[2], 60000, 'GT')  -- as append in queue.lua
      return {0, value, redis.call('PTTL', KEYS[1]), 0}
    end
    ARGV[6] = '2'  -- the first in the queue, as a token that asks again
  end
end
