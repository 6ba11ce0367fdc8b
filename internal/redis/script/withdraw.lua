-- withdraw.lua (after free.lua, lease.lua, queue.lua): take a vote back, and notify the first token of the queue whose process
-- receives the hint. That token stays first, because the hint is not a vote. The client never uses the ballot again after it has
-- sent this script for it.
-- KEYS: K, {K}:q
-- ARGV: token, ttl, claim, channel prefix, mode, 6 another token that leaves the queue, or "", 7 token that joins the queue if
--   others wait, or "", 8 "1" to notify a waiter
-- Returns 0 if the ballot did not have the vote, and then no token joined; 1 if it had the vote and no token waits; 2 if it had
--   the vote and a token waits.
local value, leaves, joins = redis.call('GET', K), ARGV[6], ARGV[7]
redis.call('LREM', Q, 0, token)  -- a first write that needs no memory: a server without memory allows the writes after it
if leaves ~= '' then redis.call('LREM', Q, 0, leaves) end
if tokenIn(value) == token then redis.call('DEL', K)
elseif value then return 0 end
local first = redis.call('LINDEX', Q, 0)
while first and ARGV[8] == '1' and not notify(first) do
  redis.call('LPOP', Q)
  first = redis.call('LINDEX', Q, 0)
end
if not value then return 0
elseif not first then return 1 end
if joins ~= '' then join(joins) end
return 2
