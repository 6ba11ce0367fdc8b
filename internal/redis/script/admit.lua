-- admit.lua (after queue.lua, shared.lua): which tokens of the queue get a lease, exclusive or shared.
--
-- Tokens are granted from the head of the queue. Exception: if the first grant opens a phase, the shared tokens behind it that
-- have room are granted with it, past exclusive tokens, which have to wait for the first one anyway.
-- While a phase lasts, no token passes a head that has to wait, as long as the head shows that its process lives: it asks about
-- once a second. A head that has not asked yet must receive a hint, and has the time of a claim more.
local grace = claim + 1500  -- ms for which a head keeps the tokens behind it waiting, from its last sign of life
local room = 64             -- how many leases one script may still grant: a hint costs about 5 us. The next asks grant the rest
local granted = {}          -- the tokens that this script has granted: granted.own, and granted.others is true for any other
local changed = false       -- the marker or the set has to be written

-- grant gives a token, which is not in the queue, its lease: own for ttl, another token for the time of a claim, if its process
-- receives the hint. The caller has checked that the lease has room.
local function grant(t, own)
  if t ~= own and not notify(t) then return end
  local life = t == own and ttl or claim
  if limitOf(t) then
    if not number then
      if redis.call('ZCARD', S) > 0 then  -- the set is void. It is never empty meanwhile: see queue.lua
        redis.call('ZADD', S, '+inf', t)
        redis.call('ZREMRANGEBYSCORE', S, '-inf', '(+inf')
      end
      number, head, untilMS = '0', '-', 0
    end
    redis.call('ZADD', S, now + life, t)
    if count == 0 then redis.call('PEXPIRE', S, life) end  -- until settle: the script may fail before that, for want of a right
    count = count + 1
  else
    redis.call('SET', K, t, 'PX', life)
    if number then redis.call('DEL', S) end
    alone, number = t, nil
  end
  if t == head then head, untilMS = '-', 0 end
  changed, room = true, room - 1
  if t == own then granted.own = true else granted.others = true end
end

-- blocks reports whether the head of the queue, which cannot be granted now, keeps own waiting, which could be. If it does not,
-- the head loses its place.
local function blocks(first, own)
  local limit = own and limitOf(own)
  if not limit or count >= limit or first == own then return true end
  if head == first then
    if now > untilMS then return false end
    if untilMS > now + grace then untilMS, changed = now + grace, true end  -- the clock was set back
    return true
  end
  if not notify(first) then return false end
  head, untilMS, changed = first, now + grace, true
  return true
end

-- admit grants the tokens of the queue that have room. own is the caller's token, or nil; it may be in the queue. opens says
-- that no lease is out, or only one that this script has granted. It returns the length of the queue.
local function admit(own, waiting, opens)
  while waiting > 0 and room > 0 and not alone do
    local first = redis.call('LINDEX', Q, 0)
    local hasRoom = count < (limitOf(first) or 1)
    if not hasRoom and (opens or blocks(first, own)) then break end
    redis.call('LPOP', Q)
    waiting = waiting - 1
    if hasRoom then grant(first, own) end
  end
  if not opens or count == 0 or waiting == 0 then return waiting end
  for _, t in ipairs(redis.call('LRANGE', Q, 0, -1)) do
    local limit = limitOf(t)
    if limit then
      if count >= limit or room == 0 then break end
      redis.call('LREM', Q, 1, t)
      waiting = waiting - 1
      grant(t, own)
    end
  end
  return waiting
end
