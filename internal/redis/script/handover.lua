-- handover.lua (after token.lua): end a lease, and leave K to its ticket for a while: see accept.lua. The token of a ticket has the form of
-- any other token, and belongs to no process. So waiters, classic clients and processes of an earlier version find an ordinary
-- lease that nobody renews. The client never uses the token of the lease again after it has sent this script for it.
-- KEYS: K   ARGV: token, ms until K expires if the ticket is not accepted, 3 token of the ticket
-- Returns 1 if K has the token of the ticket now, by this command or by an earlier send of it, and 0 if the token did not hold K:
-- nothing has changed.
local token = tokenIn(redis.call('GET', KEYS[1]))
if token ~= ARGV[1] and token ~= ARGV[3] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])  -- a first write that needs no memory: a server without memory allows the write after it
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2])
return 1
