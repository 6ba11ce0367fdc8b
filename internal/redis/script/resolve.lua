-- resolve.lua: forget the record of an attempt that died. One that runs, which is one whose token is in K, stays.
-- KEYS: K, {K}:r
-- Returns 0 when there is none: nothing has changed; 1 forgotten; 2 one runs: nothing has changed.
local s, t = unpack(redis.call('HMGET', KEYS[2], 's', 't'))
local value = redis.call('GET', KEYS[1])
if s ~= 'R' then return 0 end
if t == value then return 2 end
redis.call('DEL', KEYS[2])
return 1
