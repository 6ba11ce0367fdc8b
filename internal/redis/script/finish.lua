-- finish.lua (after leave.lua, record.lua): end an attempt, and hand K off or free it. The client never uses the token again
-- after it has sent this script for it.
-- KEYS: K, {K}:q, {K}:r
-- ARGV: token, ttl, claim, channel prefix, mode, 6 state of the record: D, U or A, 7 fingerprint, 8 ms to keep the record,
--   9 answer, 10 the reference of the attempt, if it has one and may be done: for a record that is restored.
--   The record of an abort only has to outlive late copies of begin.lua.
-- Returns {reply of leave.lua, what became of the record}:
--   0 unchanged: the record is another attempt's, or an operator has said that this attempt was not done
--   1 the record is as the arguments say, by this command or by an earlier send of it
--   2 there was no record, and no other token held K: the record is as the arguments say
local state, fingerprint, keep = ARGV[6], ARGV[7], ARGV[8]
local s, t, f, n, _, x, r = read(R, token)
local value = redis.call('GET', K)
local left = leave(value, '')

local stored
if s == '?' then return {left, 0}
elseif x and state ~= 'A' and string.find(x, ' ' .. token .. ' ', 1, true) then return {left, 0}
elseif t == aborted then return {left, state == 'A' and 1 or 0}  -- the command was sent again
elseif s and t ~= token then return {left, 0}
elseif s and s ~= 'R' then  -- the command was sent again, and the record is final
  if durable and s ~= 'A' and state ~= 'A' then extend(R, tonumber(keep)) end
  return {left, (s == 'A') == (state == 'A') and 1 or 0}
elseif s and state == 'A' and n > 1 then  -- the attempt before this one died, and the record must still say so
  redis.call('SET', R, encode('R', aborted, f, n - 1, nil, x), 'KEEPTTL')
  return {left, 1}
elseif s or state == 'A' then stored = 1  -- an abort writes its mark also if its begin has not arrived yet
elseif not value or tokenIn(value) == token then stored = 2
else return {left, 0} end  -- the attempt of the holder of K may be running
if x and state == 'A' then keep = math.max(tonumber(keep), redis.call('PTTL', R)) end
if not s then r = stored == 2 and ARGV[10] or nil end
redis.call('SET', R, encode(state, token, fingerprint, nil, nil, x, r, state == 'D' and ARGV[9] or nil), 'PX', keep)
return {left, stored}
