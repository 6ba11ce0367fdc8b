-- record.lua (after lease.lua, state.lua): the record of an idempotent request. A token stands for one attempt.
-- KEYS: K, {K}:q, {K}:r
-- {K}:r is a hash. s is the state, t is the token of the attempt, f is the fingerprint of the request. The states are:
--   R  the attempt runs, or has died; n counts the attempts, this one included, since the last one that was done or aborted
--   D  the request was done; p is its answer
--   U  the request was done, and its answer was not stored; f may be missing after resolve.lua, and then any request is a copy
--   A  the attempt was aborted; for all other attempts the record does not exist
-- x has the tokens of the attempts of which an operator has said that they were not done, each between spaces. A later attempt
-- leaves x as it is.
-- r is the reference of the attempt, behind 8 digits of its name: see state.lua. It is there only if the caller has one.
-- In the state R, u is the name of an attempt whose unknown outcome was reported, as resolve.lua has it.
-- If an attempt follows one that died, and is aborted, the record stays in state R for the attempt that died, and t says so.
local R, aborted = KEYS[3], 'aborted:' .. token

-- read returns the state as stateOf does, and the other fields except the answer.
local function read()
  local s, t, f, n, u, x, r = unpack(redis.call('HMGET', R, 's', 't', 'f', 'n', 'u', 'x', 'r'))
  s = stateOf(R, s, t, f, n)
  if s == 'A' and t ~= token then s = false end
  return s, t, f, tonumber(n), u, x, r
end
-- write makes the record that of this attempt, for so many ms. It may have one more field. The key exists all the time: see
-- the note on migrating slots in queue.lua.
local function write(state, fingerprint, keep, more, value)
  redis.call('HDEL', R, 'n', 'p', 'u')  -- also a first write that needs no memory, as in leave.lua
  if more then
    redis.call('HSET', R, 's', state, 't', token, 'f', fingerprint, more, value)
  else
    redis.call('HSET', R, 's', state, 't', token, 'f', fingerprint)
  end
  redis.call('PEXPIRE', R, keep)
end
-- refer notes the reference of this attempt, which may be nil, in place of the field r of another one.
local function refer(reference, r)
  if reference then
    redis.call('HSET', R, 'r', string.sub(redis.sha1hex(token), 1, 8) .. reference)
  elseif r then
    redis.call('HDEL', R, 'r')
  end
end
