-- revoke.lua (after token.lua): end leases of K, as an operator says, and let nobody else have their room until they would have
-- ended anyway. A tombstone replaces the token. It is the token of no process, so no script extends it, frees it or hands it on. The
-- holder learns of it from its next renewal, while the tombstone lives. To a process of an earlier version, the tombstone is the
-- value of a foreign client. A lease is named by the SHA-1 of its token, so that its name can be shown.
-- KEYS: K, {K}:s
-- ARGV: 1 tombstone, another one for each command, 2 and so on the names of the leases that were seen
-- Returns how many of these leases are revoked, by this command or by an earlier send of it. Returns -1 and changes nothing if K has
-- no TTL: a tombstone would stay forever.
local K, S, tombstone = KEYS[1], KEYS[2], ARGV[1]
local value, seen, revoked = redis.call('GET', K), {}, 0
for i = 2, #ARGV do seen[ARGV[i]] = true end

-- isAgain reports whether the token is the tombstone of an earlier send, and nameOf names a lease that was seen.
local function isAgain(token) return string.sub(token, 1, #tombstone) == tombstone end
local function nameOf(token)
  local name = redis.sha1hex(token)
  return seen[name] and name
end

if not value then return 0 end
if not string.find(value, '^shared %d+ %S+ %d+$') then  -- see marker.lua
  local token = tokenIn(value)
  if isAgain(token) then return 1 end
  local name, left = nameOf(token), redis.call('PTTL', K)
  if not name then return 0 elseif left < 0 then return -1 end
  redis.call('PEXPIRE', K, math.max(left, 1))  -- a first write that needs no memory: a server without memory allows the write after it
  redis.call('SET', K, tombstone .. ':' .. name, 'PX', math.max(left, 1))
  return 1
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local leases = redis.call('ZRANGE', S, 0, -1, 'WITHSCORES')
for i = 1, #leases, 2 do
  local token, ends = leases[i], leases[i + 1]
  if tonumber(ends) > now then
    local name = nameOf(token)
    if isAgain(token) then revoked = revoked + 1
    elseif name then
      redis.call('ZREMRANGEBYSCORE', S, '-inf', now)  -- as PEXPIRE above. This lease stays, so the set is never empty meanwhile
      redis.call('ZADD', S, ends, tombstone .. ':' .. name)
      redis.call('ZREM', S, token)
      revoked = revoked + 1
    end
  end
end
return revoked
