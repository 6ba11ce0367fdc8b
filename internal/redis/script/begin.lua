-- begin.lua (after done.lua, leave.lua, ask.lua, record.lua): ask for K, and for leave to run under it, by the record. A
-- waiter runs it again as it does enqueue.lua.
-- KEYS: K, {K}:q, {K}:r, {K}:f   ARGV: those of ask.lua, 8 fingerprint, 9 ms to keep the record,
--   10 "rerun" or "reject": whether to run after an attempt that died
-- Returns ask.lua's answer and one field more: when K is ours, the number of the attempt; when it is not, 1 if another
--   attempt runs, else 0; or, when there is nothing to run,
--   {2, answer} done; {3} done, without an answer, or nobody can tell; {4} another fingerprint; {5} an earlier attempt died;
--   {6} this attempt was aborted: a late copy of its begin, for whose answer nobody waits
local fingerprint, keep = ARGV[8], ARGV[9]
local s, t, f, n = read()
local value = redis.call('GET', K)

local verdict
if s == 'A' or t == undone then verdict = {6}
elseif s == '?' then verdict = {3}
elseif s and f ~= fingerprint then verdict = {4}
elseif s == 'D' then
  local answer = redis.call('HGET', R, 'p')
  verdict = answer and {2, answer} or {3}
elseif s == 'U' then verdict = {3}
elseif s and t ~= token and t ~= value and ARGV[10] == 'reject' then verdict = {5} end
if verdict then
  leave(value, '')
  return verdict
end

local answer = ask(value, KEYS[4])
if answer[1] == 0 then
  answer[5] = s and 1 or 0
elseif s and t == token then  -- sent again
  answer[5] = n
else
  answer[5] = (s and n or 0) + 1
  write('R', fingerprint, keep, 'n', answer[5])
end
return answer
