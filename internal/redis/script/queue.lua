-- queue.lua (after lease.lua): the queue of waiters, a list of tokens, first in, first out. A token stands for one wait.
-- While a slot of a cluster migrates, a key that has become empty exists on the other node only, and a script that touches it
-- fails halfway. So the scripts do not touch a key that they know to be empty.
-- KEYS: K, {K}:q   ARGV: token, ttl, claim in ms, channel prefix, mode
-- mode is how the caller's process receives messages:
--   "S" by SPUBLISH in the slot of K, in a cluster; the number of receivers is exact
--   "M" as "S", in a cluster of many masters: PUBLISH there sends the message to every node
--   "P" by PUBLISH; the number of receivers is exact
--   "B" by PUBLISH in a cluster; the number of receivers is too low, because subscribers of other nodes are not counted
local Q, claim, channel, mode = KEYS[2], ARGV[3], ARGV[4], ARGV[5]

-- processOf returns the process id in a token, or nil if a foreign client made the value.
local function processOf(t)
  if string.byte(t, 33) == 58 and string.find(t, '^%x+:%d+$') then return string.sub(t, 1, 32) end  -- 58 is the colon
end

-- publish sends a message to a process, and returns the number of receivers, or nil if the server refuses the command, because it
-- is older than Redis 7 or by an ACL.
local function publish(sharded, process, message)
  local receivers
  if sharded then
    receivers = redis.pcall('SPUBLISH', string.sub(Q, 1, -2) .. process, message)  -- {K}:<process>
  else
    receivers = redis.pcall('PUBLISH', channel .. process, message)
  end
  if type(receivers) == 'number' then return receivers end
end

-- notify sends a hint to the process of a token, and returns whether the process may have received it. The process may have
-- another kind of client than the caller. So a message that nobody receives is sent the other way, too. PUBLISH counts
-- the subscribers of this node: one that a plain client has at another node of a cluster does not count. If the command of the
-- caller's own kind is refused in a cluster, or counts too few, the process counts as a receiver. If an ACL refuses both
-- commands, no process receives hints, and waiters depend on their timers.
-- holds says that the token is a holder's, which loses nothing without the hint: mode M spares the PUBLISH then. popped is what free.lua
-- knows of the message of the caller's own kind, if it has sent that already.
local function notify(t, holds, popped)
  local process, message = processOf(t), t .. ' ' .. K
  if not process then return false end
  local sharded = mode == 'S' or mode == 'M'
  local own
  if popped then own = popped.receivers or nil else own = publish(sharded, process, message) end
  if own and (own > 0 or holds and mode == 'M') then return own > 0 end
  local other = publish(not sharded, process, message)
  if other and other > 0 then return true end
  if mode == 'B' then return own ~= nil end
  return sharded and own == nil and other ~= nil
end

-- handOff gives K, for the time of a claim, to the first token of the queue whose process receives the hint, and removes the
-- tokens before it. waiting is the length of the queue, or nil if free.lua has popped the first token. It returns the new holder and
-- how many tokens are left in the queue. If no token ahead of own takes K, it returns nil for the holder, and the caller writes K itself.
local function handOff(own, waiting, popped)
  while popped or waiting > 0 do
    local first = popped and popped.token or redis.call('LPOP', Q)
    if not popped then waiting = waiting - 1 end
    if first == own then break end
    if notify(first, false, popped) then
      redis.call('SET', K, first, 'PX', claim)
      return first, waiting
    end
    if popped then  -- the queue may be empty now, and then LLEN fails while the slot migrates
      local length = redis.pcall('LLEN', Q)
      waiting, popped = type(length) == 'number' and length or 0, nil
    end
  end
  return nil, waiting
end

-- append appends a token to the queue, keeps the queue for at least a minute, and returns its length. The token must not be in the
-- queue.
local function append(t)
  local waiting = redis.call('RPUSH', Q, t)
  redis.call('PEXPIRE', Q, 60000, waiting == 1 and 'NX' or 'GT')  -- GT never gives a key its first TTL
  return waiting
end

-- join does the same unless the token is in the queue. It returns the length, and how many tokens are ahead of this one. LPOS
-- compares all tokens if this one is not in the queue.
local function join(t)
  local ahead = redis.call('LPOS', Q, t)
  if not ahead then
    local waiting = append(t)
    return waiting, waiting - 1
  end
  extend(Q, 60000)
  return redis.call('LLEN', Q), ahead
end
