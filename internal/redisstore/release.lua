-- release.lua (after free.lua, lease.lua, line.lua): give K on or free it, and leave the line, by token. After this was sent once
-- for a token, that token is dead.
-- KEYS: K, {K}:q   ARGV: token, ttl, claim, channel prefix, mode, 6 token that rejoins the line, or ""
-- Returns 0 when K was not ours, and then nobody rejoined; 1 freed; 2 handed to another, and rejoined behind;
--   3 nobody else waits: K carries the token that rejoined, for ttl.
local again = ARGV[6]
local ours = redis.call('GET', K) == token
redis.call('LREM', Q, 0, token)  -- also the first write: after it, no want of memory stops the rest
if not ours then return 0 end
if pass(again) then
  if again ~= '' then join(again) end
  return 2
elseif again ~= '' then
  redis.call('SET', K, again, 'PX', ttl)
  return 3
end
redis.call('DEL', K)
return 1
