-- ask.lua (after lease.lua, line.lua, fence.lua): ask for K, wait in line for it, confirm a grant.
-- KEYS: K, {K}:q   ARGV: token, ttl, claim, channel prefix, mode, 6 "1" to join the line, 7 numbers wanted

-- ask gives us K, if its value allows it and nobody stands before us. A token is granted by exact match only: another one
-- of the same process is another's. The fence is touched only if numbers are wanted.
-- It returns {1, length of the line, first number or 0} when K is ours, for at least ttl from now;
--   {0, value of K, its PTTL, silent} when it is not. silent is 1 when we are the first, and the holder is foreign.
local function ask(value, fence)
  local waiting, wanted = redis.call('LLEN', Q), tonumber(ARGV[7])
  local last = lastFence(fence, wanted)
  local told = false
  if not value then
    redis.call('SET', K, token, 'PX', ttl)  -- first, since a server without memory refuses it: then nothing has changed
    value = waiting > 0 and pass(token) or token
    told = true
  elseif value == token then
    if waiting > 0 then redis.call('LREM', Q, 0, token) end  -- after a late take
    raise(K, ttl)
  end
  if value == token then
    return {1, redis.call('LLEN', Q), reserve(fence, last, wanted)}
  end
  if ARGV[6] == '1' then join(token) end
  local silent = 0
  if redis.call('LINDEX', Q, 0) == token then
    if not processOf(value) then silent = 1 elseif not told then tell(value) end  -- "somebody waits", on each run
  end
  return {0, value, redis.call('PTTL', K), silent}
end
