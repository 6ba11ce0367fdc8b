-- sharedtake.lua (after marker.lua) begins sharedask.lua. It handles the common case first: the queue is empty, a shared lease
-- that is not out yet has room in this phase or begins one, and no fencing number is wanted. In any other case it changes nothing
-- that counts. The first write is a pcall, because a server without memory refuses it, and sharedask.lua can confirm a lease
-- without more memory.
local limit = limitOf(ARGV[1])
if limit and ARGV[7] == '0' and (number or not value) and redis.call('LLEN', KEYS[2]) == 0 then
  local others = number and redis.call('ZCOUNT', KEYS[3], '(' .. now, '+inf') or 0
  local ends = now + ARGV[2]
  if (others > 0 or not value) and others < limit and redis.pcall('ZADD', KEYS[3], 'NX', ends, ARGV[1]) == 1 then
    if number then
      if tonumber(redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]) == ends then
        redis.call('PEXPIREAT', KEYS[1], ends)
        redis.call('PEXPIREAT', KEYS[3], ends)
      end
      return {1, 0, 0, 0}
    elseif redis.call('ZCARD', KEYS[3]) == 1 then
      redis.call('PEXPIRE', KEYS[3], ARGV[2])
      redis.call('SET', KEYS[1], 'shared 0 - 0', 'PX', ARGV[2])
      return {1, 0, 0, 0}
    end
  end
end
