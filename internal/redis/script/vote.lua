-- vote.lua (after lease.lua, line.lua): one server's vote in a quorum. K is its vote, and the token a ballot. The line gives
-- no order here: it says whom to wake. So a vote goes to whoever asks while there is none.
-- KEYS: K, {K}:q   ARGV: token, ttl, claim, channel prefix, mode, 6 token of the waiter, or "", 7 "1" to let that join the line
-- Returns {1, how many others wait, 0, 0} when the vote is ours, for at least ttl from now;
--   {0, value of K, its PTTL, silent} when it is another's. silent is 1 when that is foreign: nobody tells of its end.
local value, waiter = redis.call('GET', K), ARGV[6]
if not value then
  redis.call('SET', K, token, 'PX', ttl)
elseif value == token then
  raise(K, ttl)
else
  if ARGV[7] == '1' then
    join(waiter)
    tell(value)  -- "somebody waits", on each run
  end
  return {0, value, redis.call('PTTL', K), processOf(value) and 0 or 1}
end
local waiting = redis.call('LLEN', Q)
if waiting > 0 and redis.call('LPOS', Q, waiter) then waiting = waiting - 1 end
return {1, waiting, 0, 0}
