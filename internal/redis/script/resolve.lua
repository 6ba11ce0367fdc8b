-- resolve.lua (after state.lua): end an attempt that died, as an operator says, or note that its outcome was reported. An attempt
-- is named by the SHA-1 of its token, so that its name can be shown. The script changes nothing unless the record still is the
-- one of the attempt that the operator has seen.
-- KEYS: K, {K}:r
-- ARGV: 1 name of the attempt that was seen, 2 what to do:
--     "F" the request was not done: the next one runs; 3 ms to keep the record, which then refuses a commit of the attempt
--     "U" the request was done, without an answer; 3 ms to keep the record
--     "D" the request was done; 3 ms to keep the record, 4 its answer
--     "N" note that the unknown outcome was reported: an observer has received an event, and copies need not report it
--   U and D replace the token, so that finish.lua refuses a late commit of the attempt. F adds the token to the field x.
--   F and U also resolve a record of another format, if K is free: F deletes it. D does not: its fingerprint may be missing.
-- Returns 0 if there is no record; 1 if it is as the arguments say, by this command or by an earlier send of it; 2 if the attempt
-- runs, because its token is the value of K; 3 if the record is that of another attempt, or the attempt has ended.
local R, seen, to, keep, answer = KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local s, t, f, n, _, x, r, p = read(R)
local value = redis.call('GET', KEYS[1])
local resolved = 'resolved:' .. seen

if not s then return 0 end
local again = t == resolved and s == to and (s == 'U' or p == answer)
if not again then
  local isDamaged = s == '?' and (to == 'F' or to == 'U')
  if redis.sha1hex(t or '') ~= seen or s ~= 'R' and not isDamaged then return 3 end
  if value and (tokenIn(value) == t or isDamaged) then return 2 end
  if to == 'N' then
    redis.call('SET', R, encode(s, t, f, n, 1, x, r), 'KEEPTTL')
    return 1
  end
  if to == 'F' and isDamaged then
    redis.call('DEL', R)
    return 1
  end
end
redis.call('PEXPIRE', R, keep)  -- a first write that needs no memory: a server without memory allows the write after it
local record
if to == 'F' then
  record = encode('A', t, f, nil, nil, (x or ' ') .. t .. ' ', r)
else
  record = encode(to, resolved, f, nil, nil, x, r, answer)
end
redis.call('SET', R, record, 'PX', keep)
return 1
