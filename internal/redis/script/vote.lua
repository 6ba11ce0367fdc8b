-- vote.lua (after lease.lua, queue.lua): the vote of one server in a quorum. K is the vote, and the token is a ballot. The
-- queue does not order the ballots: it only says which process to notify. So a free vote goes to any ballot that asks. A process
-- that does not know that others want K asks with SET NX first, and SET NX GET if that is refused.
-- KEYS: K, {K}:q
-- ARGV: token, ttl, claim, channel prefix, mode, 6 token of the waiter, or "", 7 "1" to let that token join the queue
-- Returns {1, how many other tokens wait, 0, 0} if the ballot has the vote for at least ttl from now, and otherwise
--   {0, value of K, PTTL of K, 1 if the value is a foreign client's, else 0}. A foreign client sends no hint when it releases.
local value, waiter = redis.call('GET', K), ARGV[6]
if value and tokenIn(value) ~= token then
  if ARGV[7] == '1' then
    join(waiter)
    notify(value, true)  -- on each run, because an earlier message may be lost
  end
  return {0, value, redis.call('PTTL', K), processOf(value) and 0 or 1}
end
local waiting = redis.call('LLEN', Q)  -- before the first write: it fails if Q is no list
if value then extend(K, ttl) else redis.call('SET', K, token, 'PX', ttl) end
if waiting > 0 and redis.call('LPOS', Q, waiter) then waiting = waiting - 1 end
return {1, waiting, 0, 0}
