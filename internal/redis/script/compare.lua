-- compare.lua: which locks do not have the values any more that their waiters have seen. It writes nothing. A key that cannot be
-- read counts, so that its waiter asks and gets the error.
-- KEYS: K of each lock   ARGV: the value of each
-- Returns the indexes of the locks, from 1.
local changed = {}
for i, K in ipairs(KEYS) do
  if redis.pcall('GET', K) ~= ARGV[i] then changed[#changed + 1] = i end
end
return changed
