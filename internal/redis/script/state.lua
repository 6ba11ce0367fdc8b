-- state.lua: the state of a record, and the reference of its attempt. record.lua describes the fields.
-- stateOf returns the state of the record R with these fields. It returns false if there is no record, and '?' if the value has
-- another format: the outcome of the request is unknown then.
local function stateOf(R, s, t, f, n)
  if not s then return redis.call('EXISTS', R) == 1 and '?' end
  local isComplete = t and (f or s == 'U') and (s ~= 'R' or (tonumber(n) or 0) > 0)
  return string.match(s, '^[RDUA]$') and isComplete and s or '?'
end

-- firstOf returns the reference in the field r of a record whose token is t, or "" if there is none. r begins with 8 digits of the
-- name of its attempt, as resolve.lua has it: a process of an earlier version replaces the attempt, and leaves r as it is.
local function firstOf(t, r)
  if not t or not r then return '' end
  local name = string.match(t, '^resolved:(%x+)$') or redis.sha1hex(t)
  return string.sub(r, 1, 8) == string.sub(name, 1, 8) and string.sub(r, 9) or ''
end
