-- finish.lua (after leave.lua, record.lua): end an attempt, and give K on or free it. After this was sent once for a
-- token, that token is dead.
-- KEYS: K, {K}:q, {K}:r   ARGV: token, ttl, claim, channel prefix, mode, 6 state: D, U or A, 7 fingerprint,
--   8 ms to keep the record, 9 answer. After an abort it only has to outlive late copies of begin.lua.
-- Returns {what leave.lua does, what became of the record}:
--   0 it stays: it is another attempt's; 1 it is as we say, now or since an earlier send;
--   2 there was none any more, and nobody else held K: it is as we say again
local state, fingerprint, keep = ARGV[6], ARGV[7], ARGV[8]
local s, t, _, n = read()
local value = redis.call('GET', K)
local left = leave(value, '')

local stored
if s == '?' then return {left, 0}
elseif t == undone then return {left, state == 'A' and 1 or 0}  -- sent again
elseif s and t ~= token then return {left, 0}
elseif s and s ~= 'R' then  -- sent again; nothing is undone
  if durable and s ~= 'A' and state ~= 'A' then raise(R, tonumber(keep)) end
  return {left, (s == 'A') == (state == 'A') and 1 or 0}
elseif s and state == 'A' and n > 1 then  -- the one before us died, and that stays so
  redis.call('HSET', R, 't', undone, 'n', n - 1)
  return {left, 1}
elseif s or state == 'A' then stored = 1  -- an abort leaves its mark also where its begin may still come
elseif not value or value == token then stored = 2
else return {left, 0} end  -- whoever holds K may be running
if state == 'D' then write(state, fingerprint, keep, 'p', ARGV[9]) else write(state, fingerprint, keep) end
return {left, stored}
