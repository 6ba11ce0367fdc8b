-- line.lua (after lease.lua): the waiting line, a list of tokens, first in, first out. A token is one wait.
-- KEYS: K, {K}:q   ARGV: token, ttl, claim in ms, channel prefix, mode
-- mode: "S" SPUBLISH in the slot of K, in a cluster, and its count is true; "P" PUBLISH, and its count is true; "B" PUBLISH,
-- and its count is not, in a cluster, where other nodes' listeners are not counted.
local Q, claim, channel, mode = KEYS[2], ARGV[3], ARGV[4], ARGV[5]

-- processOf returns the process id in a token, or nil when a foreign client made it.
local function processOf(t)
  return string.match(t, '^(' .. string.rep('%x', 32) .. '):%d+$')
end

-- tell says "look again" to the process of a token, and returns whether it listens. A server that refuses SPUBLISH, since
-- it is older than Redis 7 or by an ACL, is told PUBLISH as in mode B. Where an ACL refuses PUBLISH too, nobody listens: the
-- waiters then live by their timers.
local function tell(t)
  local process = processOf(t)
  local message = t .. ' ' .. K
  local heard
  if process and mode == 'S' then
    heard = redis.pcall('SPUBLISH', string.sub(Q, 1, -2) .. process, message)  -- {K}:<process>
    if type(heard) == 'number' then return heard > 0 end
  end
  heard = process and redis.pcall('PUBLISH', channel .. process, message)
  return type(heard) == 'number' and (heard > 0 or mode ~= 'P')
end

-- pass gives K, for the time of a claim, to the first of the line that listens, and returns its token. It returns nil
-- when nobody stands before own: then K is the caller's to write. Who does not listen is dropped.
local function pass(own)
  local first = redis.call('LPOP', Q)
  while first and first ~= own and not tell(first) do first = redis.call('LPOP', Q) end
  if not first or first == own then return nil end
  redis.call('SET', K, first, 'PX', claim)
  return first
end

-- join puts a token at the end of the line, once, and keeps the line for a minute more.
local function join(t)
  if not redis.call('LPOS', Q, t) then redis.call('RPUSH', Q, t) end
  raise(Q, 60000)
end
