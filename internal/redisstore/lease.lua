-- lease.lua begins the scripts, but for free.lua and done.lua: it names the lock and one lease of it.
-- KEYS: K   ARGV: token, ttl in ms
local K, token, ttl = KEYS[1], ARGV[1], tonumber(ARGV[2])

-- raise gives a key a life of at least ms. It never shortens one: somebody counts on it.
local function raise(key, ms)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, ms) end
end
