-- state.lua: the state of a record. record.lua describes the fields.
-- stateOf returns the state of the record R with these fields. It returns false if there is no record, and '?' if the value has
-- another format: the outcome of the request is unknown then.
local function stateOf(R, s, t, f, n)
  if not s then return redis.call('EXISTS', R) == 1 and '?' end
  local isComplete = t and (f or s == 'U') and (s ~= 'R' or (tonumber(n) or 0) > 0)
  return string.match(s, '^[RDUA]$') and isComplete and s or '?'
end
