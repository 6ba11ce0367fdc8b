-- begin.lua (after done.lua, leave.lua, ask.lua, record.lua): ask for K, and for permission to run an attempt under it. The
-- record decides about the permission. A waiter runs this script again, as it does enqueue.lua. While shared leases of K are out,
-- an attempt waits as behind a foreign client: shared tokens behind it may be granted before it.
-- KEYS: K, {K}:q, {K}:r, {K}:f
-- ARGV: those of ask.lua, 8 fingerprint, 9 ms to keep the record, 10 what to do after an attempt that died: "rerun" or "reject",
--   11 the reference of the attempt, if it has one
-- Returns the reply of ask.lua with a fifth field: the number of the attempt if the token holds K; otherwise 1 if another
-- attempt runs, and 0 if none does. If there is nothing to run, it returns one of these:
--   {2, answer} the request was done
--   {3} the request was done without an answer, or its outcome is unknown
--   {4} the record has another fingerprint
--   {5} an earlier attempt died
--   {5, name} the same, and the record does not say yet that this was reported: see resolve.lua for the name
--   {6} this attempt was aborted: a late copy of its begin, and no caller waits for the reply
-- A reply about another attempt that has a reference has it as one more field, and then {5} is {5, ""}.
local fingerprint, keep = ARGV[8], ARGV[9]
local value = redis.call('GET', K)
local first = s and t ~= token and r or ''

local verdict
if s == 'A' or t == aborted then verdict = {6}
elseif s == '?' then verdict = {3}
elseif s and f and f ~= fingerprint then verdict = {4}
elseif s == 'D' then verdict = {2, p}
elseif s == 'U' then verdict = {3}
elseif s and t ~= token and tokenIn(value) ~= t and ARGV[10] == 'reject' then
  verdict = reported and {5} or {5, redis.sha1hex(t)}
end
if verdict then
  leave(value, '')
  if first ~= '' and verdict[1] ~= 6 then
    if verdict[1] == 5 and not verdict[2] then verdict[2] = '' end
    table.insert(verdict, first)
  end
  return verdict
end

local answer = ask(value, KEYS[4])
if answer[1] == 0 then
  answer[5] = s and 1 or 0
elseif s and t == token then  -- the command was sent again
  answer[5] = n
else
  answer[5] = (s and n or 0) + 1
  redis.call('SET', R, encode('R', token, fingerprint, answer[5], nil, x, ARGV[11]), 'PX', keep)
end
if first ~= '' then answer[6] = first end
return answer
