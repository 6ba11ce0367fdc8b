-- rights.lua: free the key of a Check, and find out which rights are missing, without a use of them.
-- KEYS: K   ARGV: token, then each command: how many words, the words
-- Returns the names of the commands that the server would refuse, or false if the token does not hold K.
if tokenIn(redis.call('GET', KEYS[1])) ~= ARGV[1] then return false end
redis.call('DEL', KEYS[1])
local refused, i = {}, 2
while redis.acl_check_cmd and i < #ARGV do
  local last = i + ARGV[i]
  local isKnown, isAllowed = pcall(redis.acl_check_cmd, unpack(ARGV, i + 1, last))
  if not (isKnown and isAllowed) then table.insert(refused, ARGV[i + 1]) end
  i = last + 1
end
return table.concat(refused, ' ')
