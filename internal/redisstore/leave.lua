-- leave.lua (after lease.lua, line.lua): the end of an episode. After it the token is dead.

-- leave takes our token out of the line and, if it is the value of K, gives K on or frees it. again is a token that
-- rejoins the line, or "".
-- It returns 0 when K was not ours, and then nobody rejoined; 1 freed; 2 handed to another, and rejoined behind;
--   3 nobody else waits: K carries the token that rejoined, for ttl.
local function leave(value, again)
  redis.call('LREM', Q, 0, token)  -- also the first write: after it, no want of memory stops the rest
  if value ~= token then return 0 end
  if pass(again) then
    if again ~= '' then join(again) end
    return 2
  elseif again ~= '' then
    redis.call('SET', K, again, 'PX', ttl)
    return 3
  end
  redis.call('DEL', K)
  return 1
end
