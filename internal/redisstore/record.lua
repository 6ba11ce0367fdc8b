-- record.lua (after lease.lua): what became of the attempts of an idempotent request. A token is one attempt.
-- KEYS: K, {K}:q, {K}:r
-- {K}:r is a hash: s the state, t the token of the attempt, f the fingerprint of its request, and
--   R  it runs, or died: n counts the attempts, this one included, since one was done or aborted
--   D  it was done: p is its answer
--   U  it was done, and its answer was not kept
--   A  it was aborted: for all other attempts this is no record
local R = KEYS[3]

-- read returns the fields of the record, but for the answer. The state is false where there is no record.
local function read()
  local s, t, f, n = unpack(redis.call('HMGET', R, 's', 't', 'f', 'n'))
  if s and not string.match(s, '^[RDUA]$') then error('the record has no such state') end
  if s == 'A' and t ~= token then s = false end
  return s, t, f, tonumber(n)
end

-- write makes the record anew, as ours, for so many ms. It may have one more field.
local function write(state, fingerprint, keep, ...)
  redis.call('DEL', R)
  redis.call('HSET', R, 's', state, 't', token, 'f', fingerprint, ...)
  redis.call('PEXPIRE', R, keep)
end
