-- withdraw.lua (after lease.lua, line.lua): take a vote back, and wake the first of the line that listens. It stays the
-- first: what it is told is no vote. After this was sent once for a ballot, that ballot is dead.
-- KEYS: K, {K}:q   ARGV: token, ttl, claim, channel prefix, mode, 6 another token that leaves the line, or "",
--   7 token that joins it if others wait, or "", 8 "1" to wake somebody
-- Returns 0 when the vote was not ours, and then nobody joined; 1 when it was, and nobody waits; 2 when somebody does.
local value, leaves, joins = redis.call('GET', K), ARGV[6], ARGV[7]
redis.call('LREM', Q, 0, token)  -- a first write that takes no memory: after it, no want of memory stops the rest
if leaves ~= '' then redis.call('LREM', Q, 0, leaves) end
if value == token then redis.call('DEL', K)
elseif value then return 0 end
local first = redis.call('LINDEX', Q, 0)
while first and ARGV[8] == '1' and not tell(first) do
  redis.call('LPOP', Q)
  first = redis.call('LINDEX', Q, 0)
end
if not value then return 0
elseif not first then return 1 end
if joins ~= '' then join(joins) end
return 2
