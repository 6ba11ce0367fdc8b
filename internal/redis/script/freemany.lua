-- freemany.lua: does what the short form of release.lua does (see free.lua) for several locks, none of which fails the others.
-- KEYS: K and {K}:q of each lock   ARGV: the token of each lock
-- Returns freed, and then the places of the locks that it has not freed: it has changed nothing of those.
local reply = {freed}
for i, token in ipairs(ARGV) do
  local K, Q = KEYS[2 * i - 1], KEYS[2 * i]
  local value = redis.pcall('GET', K)  -- an error is a table
  if type(value) ~= 'string' or tokenIn(value) ~= token or redis.pcall('LLEN', Q) ~= 0 or redis.pcall('DEL', K) ~= 1 then
    reply[#reply + 1] = i
  end
end
return reply
