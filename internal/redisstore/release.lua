-- release.lua: free a key, by its holder only. After this was sent once for a token, that token is dead.
-- KEYS: K   ARGV: token
-- Returns 1 when K was ours and is free now, 0 when it was not ours.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
return 1
