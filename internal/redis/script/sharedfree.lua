-- sharedfree.lua (after marker.lua) begins sharedrelease.lua. It handles the common case first: the queue is empty, no token
-- rejoins it, and the lease is the only one of a marker. The short form of the command has the token as its only argument: see
-- sharedend.lua.
-- The lease need not be compared with the clock. K is still the marker, and the set has no other lease, so no token has had a
-- lease since this one was granted.
local ends, leases
local isAlone = number and (ARGV[6] or '') == '' and redis.call('LLEN', KEYS[2]) == 0  -- no token waits
if isAlone then
  ends, leases = redis.call('ZSCORE', KEYS[3], ARGV[1]), redis.call('ZCARD', KEYS[3])
  if ends and leases == 1 then
    redis.call('DEL', KEYS[1], KEYS[3])
    return 1
  end
end
