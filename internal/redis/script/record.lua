-- record.lua (after lease.lua): what became of the attempts of an idempotent request. A token is one attempt.
-- KEYS: K, {K}:q, {K}:r
-- {K}:r is a hash: s the state, t the token of the attempt, f the fingerprint of its request, and
--   R  it runs, or died: n counts the attempts, this one included, since one was done or aborted
--   D  it was done: p is its answer
--   U  it was done, and its answer was not kept
--   A  it was aborted: for all other attempts this is no record
-- An attempt after one that died, when it is aborted, leaves the record as that of the dead one: t says so.
local R, undone = KEYS[3], 'aborted:' .. token

-- read returns the fields of the record, but for the answer. The state is false where there is no record, and '?' where
-- it is none of ours: nobody knows what became of the request.
local function read()
  local s, t, f, n = unpack(redis.call('HMGET', R, 's', 't', 'f', 'n'))
  n = tonumber(n)
  if s and not (string.match(s, '^[RDUA]$') and t and f and (n or s ~= 'R')) then s = '?' end
  if not s and redis.call('EXISTS', R) == 1 then s = '?' end
  if s == 'A' and t ~= token then s = false end
  return s, t, f, n
end

-- write makes the record anew, as ours, for so many ms. It may have one more field. The record is never gone meanwhile:
-- see line.lua.
local function write(state, fingerprint, keep, more, value)
  redis.call('HDEL', R, 'n', 'p')  -- also a first write, as in leave.lua
  if more then
    redis.call('HSET', R, 's', state, 't', token, 'f', fingerprint, more, value)
  else
    redis.call('HSET', R, 's', state, 't', token, 'f', fingerprint)
  end
  redis.call('PEXPIRE', R, keep)
end
