-- queue.lua (after lease.lua): the queue of waiters, a list of tokens, first in, first out. A token stands for one wait.
-- While a slot of a cluster migrates, a key that has become empty exists on the other node only, and a script that touches it
-- fails halfway. So the scripts do not touch a key that they know to be empty.
-- KEYS: K, {K}:q   ARGV: token, ttl, claim in ms, channel prefix, mode
-- mode is how messages are sent:
--   "S" SPUBLISH in the slot of K, in a cluster; the number of receivers is exact
--   "P" PUBLISH; the number of receivers is exact
--   "B" PUBLISH in a cluster; the number of receivers is too low, because subscribers of other nodes are not counted
local Q, claim, channel, mode = KEYS[2], ARGV[3], ARGV[4], ARGV[5]

-- processOf returns the process id in a token, or nil if a foreign client made the value.
local function processOf(t)
  return string.match(t, '^(' .. string.rep('%x', 32) .. '):%d+$')
end

-- notify sends a hint to the process of a token, and returns whether the process may have received it. A server that refuses
-- SPUBLISH, because it is older than Redis 7 or by an ACL, gets PUBLISH as in mode B. If an ACL refuses PUBLISH too, no process
-- receives hints, and waiters depend on their timers.
local function notify(t)
  local process = processOf(t)
  local message = t .. ' ' .. K
  local receivers
  if process and mode == 'S' then
    receivers = redis.pcall('SPUBLISH', string.sub(Q, 1, -2) .. process, message)  -- {K}:<process>
    if type(receivers) == 'number' then return receivers > 0 end
  end
  receivers = process and redis.pcall('PUBLISH', channel .. process, message)
  return type(receivers) == 'number' and (receivers > 0 or mode ~= 'P')
end

-- handOff gives K, for the time of a claim, to the first token of the queue whose process receives the hint, and removes the
-- tokens before it. waiting is the length of the queue. It returns the new holder and how many tokens are left in the queue.
-- If no token ahead of own takes K, it returns nil for the holder, and the caller writes K itself.
local function handOff(own, waiting)
  while waiting > 0 do
    local first = redis.call('LPOP', Q)
    waiting = waiting - 1
    if first == own then break end
    if notify(first) then
      redis.call('SET', K, first, 'PX', claim)
      return first, waiting
    end
  end
  return nil, waiting
end

-- join appends a token to the queue unless it is in it, keeps the queue for at least a minute, and returns its length.
local function join(t)
  if not redis.call('LPOS', Q, t) then redis.call('RPUSH', Q, t) end
  extend(Q, 60000)
  return redis.call('LLEN', Q)
end
