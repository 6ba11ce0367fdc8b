-- resolve.lua: delete the record of an attempt that died. An attempt whose token is the value of K runs: its record stays.
-- KEYS: K, {K}:r
-- Returns 0 if there is no such record: nothing has changed; 1 if it was deleted; 2 if the attempt runs: nothing has changed.
local s, t = unpack(redis.call('HMGET', KEYS[2], 's', 't'))
local value = redis.call('GET', KEYS[1])
if s ~= 'R' then return 0 end
if t == value then return 2 end
redis.call('DEL', KEYS[2])
return 1
