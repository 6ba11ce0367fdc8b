-- shared.lua (after clock.lua, lease.lua): the shared leases of K. The line before it names their set: S is {K}:s.
local count = redis.call('ZCOUNT', S, '(' .. now, '+inf')  -- how many leases are out
if not number then count = 0 end
local alone = value and not number and value  -- the token that has K alone, or the value of a foreign client, or false
untilMS = tonumber(untilMS or 0)
if number and count == 0 then number = '0' end  -- the phase has ended, although K is still a marker

-- endOf returns when the shared lease of a token ends, and a time that has passed if the token has none.
local function endOf(t)
  return count > 0 and tonumber(redis.call('ZSCORE', S, t) or 0) or 0
end

-- prolong makes a shared lease last for at least so many ms from now, and reports whether it was out. It never shortens a lease,
-- and never brings back one that has ended. The first write removes leases that have ended. It needs no memory, so a server
-- without memory allows the write after it.
local function prolong(t, ms)
  local ends = endOf(t)
  if ends <= now then return false end
  redis.call('ZREMRANGEBYSCORE', S, '-inf', now)
  redis.call('ZADD', S, math.max(ends, now + ms), t)
  return true
end

-- settle makes K what the leases say that are out: no key, or a marker that lives as long as the last of them. It always writes
-- then: see "durable" in lease.lua. A token that has K alone was written before.
local function settle()
  if alone then return end
  if count == 0 then
    if value then redis.call('DEL', K) end
    if number then redis.call('DEL', S) end
    return
  end
  local last = redis.call('ZRANGE', S, -1, -1, 'WITHSCORES')[2]
  local marker = string.format('shared %s %s %.0f', number, head, untilMS)
  if marker == value then redis.call('PEXPIREAT', K, last) else redis.call('SET', K, marker, 'PX', last - now) end
  redis.call('PEXPIREAT', S, last)
  value = marker
end
