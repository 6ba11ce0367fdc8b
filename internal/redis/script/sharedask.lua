-- sharedask.lua (after sharedbeside.lua, admit.lua, phase.lua): ask for a shared lease, join the queue, and confirm a grant. It is
-- also the long form of enqueue.lua, for an exclusive token while shared leases are out. A waiter runs it again on each hint and
-- each timer.
-- KEYS: K, {K}:q, {K}:s, {K}:f
-- ARGV: token, ttl, claim, channel prefix, mode, 6 "0", or another value to join the queue, 7 how many fencing numbers the caller wants
-- Returns, if the token has its lease for at least ttl from now, the same as ask.lua; a shared lease has the number of its phase.
-- In a common case it returns 1 for {1, 0, 0, 0}. Otherwise it returns
--   {0, value of K, ms, isForeign}
-- If the value is a marker, the token may get a lease in so many ms, without a hint. Otherwise the fields are those of ask.lua.
local joins, wanted = ARGV[6] ~= '0', tonumber(ARGV[7])
local waiting = redis.call('LLEN', Q)
local last = lastFence(KEYS[4], wanted)

if tokenIn(value) == token then
  granted.own = true
  if waiting > 0 then waiting = waiting - redis.call('LREM', Q, 0, token) end
  if limit then  -- a script that knows no shared leases has handed K to the token
    redis.call('ZREMRANGEBYSCORE', S, '-inf', now)  -- a first write that needs no memory, as in prolong
    alone = false
    grant(token, token)
    waiting = admit(token, waiting, true)
  else
    extend(K, ttl)
  end
elseif limit and prolong(token, ttl) then
  granted.own = true
  if waiting > 0 then waiting = admit(nil, waiting - redis.call('LREM', Q, 0, token), false) end
elseif not alone and waiting == 0 and count < (limit or 1) then
  grant(token, token)
elseif joins or (not alone and waiting > 0) then
  local wasWaiting = redis.call('LPOS', Q, token)
  waiting = join(token)
  if not alone then
    waiting = admit(token, waiting, count == 0)
    if not joins and not wasWaiting and not granted.own then waiting = waiting - redis.call('LREM', Q, 0, token) end
  end
end

if granted.own then
  local first, numbers
  if limit then
    first, numbers = reserveForPhase(KEYS[4], last, wanted)
  else
    first, numbers = reserve(KEYS[4], last, wanted)
  end
  settle()
  return {1, waiting, first, numbers}
end
local isFirst = waiting > 0 and redis.call('LINDEX', Q, 0) == token
if alone then
  local isForeign = 0
  if isFirst then
    if not processOf(alone) then isForeign = 1 elseif not granted.others then notify(alone, true) end
  end
  return {0, alone, redis.call('PTTL', K), isForeign}
end
if isFirst then head, untilMS = token, now + grace end
redis.call('ZREMRANGEBYSCORE', S, '-inf', now)
if isFirst or changed then settle() end
if isFirst then  -- each run notifies holders that a token waits, first those whose leases end first
  for _, t in ipairs(redis.call('ZRANGE', S, 0, 63)) do notify(t, true) end
end
local surplus = count - (limit or 1)  -- so many leases and one more have to end
local change = now + claim  -- the token has room, and waits for the confirmation of a lease that was granted just now
if surplus >= 0 then change = redis.call('ZRANGE', S, surplus, surplus, 'WITHSCORES')[2]
elseif untilMS > now then change = untilMS end
return {0, value, math.max(change - now, 0), 0}
