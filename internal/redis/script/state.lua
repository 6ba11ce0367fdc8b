-- state.lua: the form of a record in Redis. Only this file and record.go know it; record.lua says what the fields are.
-- A record is one string, such as "D<t> 32 <f><p>" or "R<t> 32,1,8,, <r><f>": s and t, then f, n, r, x and u between commas, then
-- r, f, x and p without anything between them. Of f, r and x, only the lengths are between the commas. A missing field is empty, and
-- so is its length; if only f is left, no comma follows. A reader finds p, which may be long and may have any bytes, without a look
-- at it.

-- parse returns the fields s, t, f, n, u, x, r and p of a record. It returns '?' if the text has another form.
local function parse(text)
  local s, t, sizes, at = string.match(text, '^([RDUA])([^ :]+:[^ ]+) ([^ ]*) ()')
  if not s then return '?' end
  local ofF, n, ofR, ofX, u = string.match(sizes, '^%d*$'), '', '', '', ''
  if not ofF then
    ofF, n, ofR, ofX, u = string.match(sizes, '^(%d*),(%d*),(%d*),(%d*),(1?)$')
    if not ofF then return '?' end
  end
  local r, f, x
  if ofR ~= '' then r, at = string.sub(text, at, at + ofR - 1), at + ofR end
  if ofF ~= '' then f, at = string.sub(text, at, at + ofF - 1), at + ofF end
  if ofX ~= '' then x, at = string.sub(text, at, at + ofX - 1), at + ofX end
  n = tonumber(n) or 0
  if at > #text + 1 or not f and s ~= 'U' or s == 'R' and n < 1 or n > 1e9 then return '?' end
  return s, t, f, n, u == '1', x, r, s == 'D' and string.sub(text, at) or nil
end

-- read returns the fields of the record R as parse does. s is false if there is no record, and if it is the mark of an abort of
-- another attempt than own. s is '?' if the value has another form or another type: the outcome of the request is unknown then.
local function read(R, own)
  local text = redis.pcall('GET', R)
  if not text then return false end
  if type(text) == 'table' then
    if string.find(text.err, 'WRONGTYPE', 1, true) then return '?' end
    text = redis.call('GET', R)  -- fails again, for want of a right or of the slot
  end
  local s, t, f, n, u, x, r, p = parse(text)
  return (s ~= 'A' or t == own) and s, t, f, n, u, x, r, p
end

-- encode returns a record with these fields. Those that may be missing may be nil.
local function encode(s, t, f, n, u, x, r, p)
  local sizes = f and #f or ''
  if n or u or x or r then
    sizes = sizes .. ',' .. (n or '') .. ',' .. (r and #r or '') .. ',' .. (x and #x or '') .. ',' .. (u or '')
  end
  return s .. t .. ' ' .. sizes .. ' ' .. (r or '') .. (f or '') .. (x or '') .. (p or '')
end
