-- sharedrelease.lua (after sharedend.lua, admit.lua): end a shared lease, and leave the queue. It is also the long form of
-- release.lua, for an exclusive token while shared leases are out. The client never uses the token again after it has sent this
-- script for it.
-- KEYS: K, {K}:q, {K}:s   ARGV: token, ttl, claim, channel prefix, mode, 6 token that rejoins the queue, or ""
-- Returns 0 if the token had no lease, and then the other one did not join; 1 if the lease has ended; 2 if another token was
--   granted or the token that rejoined waits; 3 if the token that rejoined has its lease for ttl.
local rejoins = ARGV[6]
local waiting = redis.call('LLEN', Q)
waiting = waiting - redis.call('LREM', Q, 0, token)  -- the first write: a server without memory allows the writes after it

local wasShared = endOf(token) > now
if tokenIn(value) == token then
  alone = false
elseif wasShared then
  count = count - 1
  if count == 0 then number = '0' end  -- the phase ends: a lease that this script grants begins another, with another number
else
  if number and waiting > 0 then admit(nil, waiting, count == 0) end  -- the token may have kept others waiting
  if changed then settle() end
  return 0
end

if rejoins == '' then
  admit(nil, waiting, count == 0)
elseif endOf(rejoins) > now then  -- this command is late: the other token has asked meanwhile, and keeps what it has
  granted.own = true
  admit(nil, waiting, count == 0)
elseif waiting == 0 and count < (limitOf(rejoins) or 1) then
  grant(rejoins, rejoins)
else
  admit(rejoins, join(rejoins), count == 0)
end
if wasShared and number and count > 0 then redis.call('ZREM', S, token) end
settle()
return granted.own and 3 or (granted.others or rejoins ~= '') and 2 or 1
