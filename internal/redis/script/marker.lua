-- marker.lua (after sharedtake.lua, if a script has it) begins the scripts of shared leases. While shared leases of K are out, the
-- value of K is a marker, so a take and a classic client are refused as by any other value. {K}:s is a sorted set: the token of
-- each shared lease, and the time at which the lease ends. The marker lives until the last lease ends. The set counts only beside
-- a marker; otherwise it is void. Times are in ms of the server's clock: see clock.lua.
--
-- A marker is "shared <number> <head> <until>":
--   number  the fencing number of the phase, or 0 while none was wanted. A phase ends when no lease is out, also if a release
--           grants the next one in the same step
--   head    a token that is first in the queue and cannot be granted yet, or -
--   until   until this time the head keeps the tokens behind it waiting: see admit.lua
-- KEYS: K, and the others of the script   ARGV: token
local value = redis.call('GET', KEYS[1])
local number, head, untilMS
if value == 'shared 0 - 0' then  -- the common case, which need not be parsed
  number, head, untilMS = '0', '-', '0'
elseif value then
  number, head, untilMS = string.match(value, '^shared (%d+) (%S+) (%d+)$')
end

-- limitOf returns the limit in the token of a shared lease. It returns nil for any other token, which wants K alone. The number
-- behind the process id in a shared token begins with "0", how many digits the limit has (0 is no limit), and the limit.
local function limitOf(t)
  local digits, rest = string.match(t, '^:0(%d)(%d+)$', 33)
  if not digits then return nil end
  return digits == '0' and math.huge or tonumber(string.sub(rest, 1, tonumber(digits)))
end
