-- keep.lua: end a lease, and leave K locked for a while. K gets the value of no client, so no process can free it or inherit it.
-- The queue stays as it is: its tokens ask again when K expires, as behind any foreign client. The client never uses the token
-- again after it has sent this script for it.
-- KEYS: K   ARGV: token, ms to leave K locked
-- Returns 1 if the token held K, and 0 if it did not: nothing has changed.
if tokenIn(redis.call('GET', KEYS[1])) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])  -- a first write that needs no memory: a server without memory allows the write after it
redis.call('SET', KEYS[1], 'reqlock-min-hold', 'PX', ARGV[2])
return 1
