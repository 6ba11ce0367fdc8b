-- sharedbeside.lua (after sharedtake.lua, clock.lua): the second common case of sharedask.lua. The queue is empty, a shared lease
-- that is not out yet has room beside others, and no fencing number is wanted.
-- The short form of the command returns 0 if the token has no lease and there is no room for one, and -1 in any other case. Then it
-- has changed nothing, and the client sends the long form after -1. The first write is a pcall, because a server without memory
-- refuses it, and sharedask.lua can confirm a lease without more memory.
local limit = limitOf(ARGV[1])
local others = limit and number and redis.call('ZCOUNT', KEYS[3], '(' .. now, '+inf') or 0
-- Two keys are stored, which are K and the set. So no token waits.
if stored == 2 and others > 0 and others < limit and (ARGV[7] or '0') == '0' then
  local ends = now + ARGV[2]
  if redis.pcall('ZADD', KEYS[3], 'NX', string.format('%d', ends), ARGV[1]) == 1 then
    if tonumber(redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]) == ends then
      redis.call('PEXPIREAT', KEYS[1], ends)
      redis.call('PEXPIREAT', KEYS[3], ends)
    end
    return 1
  end
end
if not ARGV[3] then  -- an earlier send of the command may have granted the lease
  if value and not number then return tokenIn(value) == ARGV[1] and -1 or 0 end
  return others >= limit and not redis.call('ZSCORE', KEYS[3], ARGV[1]) and 0 or -1
end
