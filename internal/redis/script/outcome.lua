-- outcome.lua (after state.lua): read what became of a request, for an operator. It writes nothing.
-- KEYS: K, {K}:r
-- Returns {} if there is no record, and otherwise:
--   {state: R, D or U as in record.lua, or ? if the value has another format; SHA-1 of the token of the attempt; number of the
--   attempt, or 0 if the state is not R; PTTL of the record; 1 if the attempt runs, because its token is the value of K, else 0;
--   fingerprint, or "" if there is none; reference of the attempt, or "" if it has none}
local R = KEYS[2]
local s, t, f, n, p, r = unpack(redis.call('HMGET', R, 's', 't', 'f', 'n', 'p', 'r'))
local value = redis.call('GET', KEYS[1])
s = stateOf(R, s, t, f, n)
if not s or s == 'A' then return {} end
if s == 'D' and not p then s = 'U' end  -- begin.lua reports no answer
local runs = s == 'R' and tokenIn(value) == t and 1 or 0
return {s, redis.sha1hex(t or ''), s == 'R' and tonumber(n) or 0, redis.call('PTTL', R), runs, f or '', firstOf(t, r)}
