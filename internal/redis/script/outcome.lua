-- outcome.lua (after state.lua): read what became of a request, for an operator. It writes nothing.
-- KEYS: K, {K}:r
-- Returns {} if there is no record, and otherwise:
--   {state: R, D or U as in record.lua, or ? if the value has another format; SHA-1 of the token of the attempt; number of the
--   attempt, or 0 if the state is not R; PTTL of the record; 1 if the attempt runs, because its token is the value of K, else 0;
--   fingerprint, or "" if there is none; reference of the attempt, or "" if it has none}
local R = KEYS[2]
local s, t, f, n, _, _, r = read(R)
local value = redis.call('GET', KEYS[1])
if not s then return {} end
local runs = s == 'R' and tokenIn(value) == t and 1 or 0
return {s, redis.sha1hex(t or ''), s == 'R' and n or 0, redis.call('PTTL', R), runs, f or '', r or ''}
