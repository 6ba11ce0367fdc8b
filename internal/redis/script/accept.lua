-- accept.lua (after lease.lua, fence.lua): take K over from a ticket. The new lease has a token of its own, and fencing numbers above those of
-- each lease before. The queue stays as it is: its tokens wait as behind any other lease.
-- KEYS: K, {K}:q, {K}:f   ARGV: token, ttl, 3 how many fencing numbers the caller wants, 4 token of the ticket
-- Returns the reply of renew.lua. It is {0} if K has neither the token of the ticket nor that of an earlier send of this command: the ticket
-- was accepted before, or its time is over. K never has the token of this ticket again then.
local held, wanted = tokenIn(redis.call('GET', K)), tonumber(ARGV[3])
if held ~= token and held ~= ARGV[4] then return {0} end
local waiting, last = redis.call('LLEN', KEYS[2]), lastFence(KEYS[3], wanted)
if held == token then extend(K, ttl) else redis.call('SET', K, token, 'PX', ttl) end
return {1, waiting, reserve(KEYS[3], last, wanted)}
